/** Offsets of a connector, and what moving them would do. */
import { html } from "../dom.js";
import { Nothing } from "../parts/states.js";

/** @param {{connector?: string, detail?: any, again?: () => void}} props */
export function Offsets({ connector }) {
  return html`<${Nothing} title="Not here yet" />`;
}
