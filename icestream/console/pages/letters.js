/** Dead letters, of one connector or of all. */
import { html } from "../dom.js";
import { Nothing } from "../parts/states.js";

/** @param {{connector?: string, detail?: any, again?: () => void}} props */
export function Letters({ connector }) {
  return html`<${Nothing} title="Not here yet" />`;
}
