/** Dialogs: the browser's own element, which keeps the focus inside and gives it back. */
import { html, useEffect, useRef, useState } from "../dom.js";
import { visibleLine } from "../format.js";
import { Icon } from "./icons.js";

/**
 * @param {{title: any, onClose: () => void, footer?: any, wide?: boolean, children?: any}} props
 */
export function Dialog({ title, onClose, footer, wide = false, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element.showModal();
    return () => {
      element.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const cancelled = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${dialog} class=${wide ? "wide" : ""} aria-labelledby="dialog-title" onCancel=${cancelled}>
    <div class="frame">
      <header><h2 id="dialog-title">${title}</h2>
        <button class="button plain icon push" type="button" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button></header>
      <div class="content">${children}</div>
      ${footer && html`<footer>${footer}</footer>`}
    </div>
  </dialog>`;
}

/**
 * Asks before something that cannot be taken back; `typed` must be written by hand first.
 * @param {{title: any, verb: string, danger?: boolean, typed?: string, onYes: () => any, onClose: () => void, children?: any}} props
 */
export function Confirm({ title, verb, danger = false, typed, onYes, onClose, children }) {
  const [text, setText] = useState("");
  const [isBusy, setBusy] = useState(false);
  const isReady = !isBusy && (typed === undefined || text === typed);
  const yes = async () => {
    if (!isReady) return;
    setBusy(true);
    try {
      await onYes();
    } finally {
      setBusy(false);
    }
  };
  const footer = html`<button class="button" type="button" onClick=${onClose}>Cancel</button>
    <button class="button ${danger ? "danger" : "primary"}" type="button" disabled=${!isReady} onClick=${yes}>${verb}</button>`;
  return html`<${Dialog} title=${title} onClose=${onClose} footer=${footer}>${children}
    ${typed !== undefined && html`<label class="stack small"><span>Type <code class="wrap-anywhere">${visibleLine(typed)}</code> to go on</span>
      <input type="text" autocomplete="off" spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && yes()} /></label>`}
  <//>`;
}
