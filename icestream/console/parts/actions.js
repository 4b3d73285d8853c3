/** The buttons of a connector: only those that lead somewhere from its state, and that our level allows. */
import { ACTIONS, act, pending } from "../actions.js";
import { html } from "../dom.js";
import { can } from "../store.js";
import { Icon } from "./icons.js";

const USEFUL = {
  RUNNING: ["pause", "stop", "restart"],
  PAUSED: ["resume", "stop"],
  STOPPED: ["resume"],
  FAILED: ["restart", "pause", "stop"],
};

/** @param {{name: string, state: string, small?: boolean}} props */
export function Actions({ name, state, small = false }) {
  if (!can("operate")) return null;
  const asked = pending.value.get(name);
  return html`${(USEFUL[state] ?? ["restart", "stop"]).map(
    (verb) => html`<button key=${verb} class="button ${small ? "small" : ""}" type="button" disabled=${Boolean(asked)} onClick=${() => act(name, verb)}><${Icon} name=${ACTIONS[verb].icon} />${ACTIONS[verb].title}</button>`,
  )}${asked && html`<span class="row small muted" role="status"><span class="spin"></span>${asked}</span>`}`;
}
