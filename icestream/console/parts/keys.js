/** Single keys as ways to go. They rest while somebody types, and can be switched off. */
import { html, useLayoutEffect, useRef } from "../dom.js";
import { prefs } from "../store.js";
import { Dialog } from "./dialog.js";

const SECOND_WITHIN = 1200;
/** @type {Set<{current: Record<string, () => void>}>} */
const listeners = new Set();
let first = "";
let firstAt = 0;

/**
 * While a component is there, these keys are its: `{"j": fn, "g o": fn}`.
 * @param {Record<string, () => void>} keys
 */
export function useKeys(keys) {
  const current = useRef(keys);
  current.current = keys;
  // With the first picture, not after it: whoever sees the page may press a key.
  useLayoutEffect(() => {
    listeners.add(current);
    return () => listeners.delete(current);
  }, []);
}

addEventListener("keydown", (event) => {
  if (!prefs.keys.value || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary, input")) return;
  const pair = Date.now() - firstAt < SECOND_WITHIN ? `${first} ${event.key}` : "";
  first = event.key;
  firstAt = Date.now();
  for (const keys of [...listeners].reverse()) {
    const act = (pair && keys.current[pair]) || keys.current[event.key];
    if (!act) continue;
    event.preventDefault();
    firstAt = 0;
    act();
    return;
  }
});

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName);
}

const LIST = [
  ["/", "search"],
  ["j  k", "next and previous row"],
  ["x", "select the row"],
  ["o", "more about the row, in place"],
  ["Enter", "open the row"],
  ["e", "edit the config of the connector"],
  ["g o", "go to the overview"],
  ["g w", "go to the workers"],
  ["?", "this list"],
];

/** @param {{onClose: () => void}} props */
export function KeysDialog({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <table class="plain"><tbody>${LIST.map(
      ([keys, what]) => html`<tr><td class="nowrap">${keys.split(/ +/).map((key) => html`<kbd>${key}</kbd> `)}</td><td>${what}</td></tr>`,
    )}</tbody></table>
    <label class="field"><input type="checkbox" checked=${prefs.keys.value} onChange=${(event) => (prefs.keys.value = event.target.checked)} />
      Single keys are on</label>
    <label class="field"><input type="checkbox" checked=${prefs.utc.value} onChange=${(event) => (prefs.utc.value = event.target.checked)} />
      Times in UTC; the tooltip has yours</label>
  <//>`;
}
