/** A new connector, step by step. */
import { html } from "../dom.js";
import { Nothing } from "../parts/states.js";

/** @param {{connector?: string, detail?: any, again?: () => void}} props */
export function Create({ connector }) {
  return html`<${Nothing} title="Not here yet" />`;
}
