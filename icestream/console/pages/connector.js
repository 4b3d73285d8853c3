import { html } from "../dom.js";
import { Nothing } from "../parts/states.js";
export function Connector() { return html`<${Nothing} title="Not here yet" />`; }
