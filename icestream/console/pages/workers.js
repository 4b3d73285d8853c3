import { html } from "../dom.js";
import { Nothing } from "../parts/states.js";
export function Workers() { return html`<${Nothing} title="Not here yet" />`; }
