/** Results of what somebody did, in a corner, read out by screen readers once. */
import { html, signal } from "../dom.js";
import { Icon } from "./icons.js";

const STAYS = 7000;
const said = signal([]);
let next = 1;

/**
 * @param {string} text
 * @param {"good" | "bad" | "idle"} [tone] bad ones stay until they are closed
 */
export function say(text, tone = "idle") {
  const id = next++;
  said.value = [...said.value.slice(-3), { id, text, tone }];
  if (tone !== "bad") setTimeout(() => close(id), STAYS);
}

function close(id) {
  said.value = said.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${said.value.map(
    ({ id, text, tone }) => html`<div class="toast" key=${id} data-tone=${tone}><span>${text}</span>
      <button class="link-button" type="button" aria-label="Close this message" onClick=${() => close(id)}><${Icon} name="close" /></button></div>`,
  )}</div>`;
}
