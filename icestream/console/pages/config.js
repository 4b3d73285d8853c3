/** The config of a connector, as a form and as text. */
import { html } from "../dom.js";
import { Nothing } from "../parts/states.js";

/** @param {{connector?: string, detail?: any, again?: () => void}} props */
export function Config({ connector }) {
  return html`<${Nothing} title="Not here yet" />`;
}
