/** Copying needs https or localhost; elsewhere the text is selected, for Ctrl-C. */
import { html, useRef, useState } from "../dom.js";
import { Icon } from "./icons.js";

/** A line of text, such as a command, with a button that copies it. @param {{text: string, what?: string}} props */
export function Copyable({ text, what = "text" }) {
  const code = useRef(null);
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("copied");
    } catch {
      getSelection()?.selectAllChildren(code.current);
      setSaid("selected: press Ctrl-C");
    }
    setTimeout(() => setSaid(""), 2500);
  };
  return html`<span class="copyable"><code ref=${code} class="wrap-anywhere">${text}</code>
    <button class="button plain small" type="button" aria-label="Copy the ${what}" onClick=${copy}><${Icon} name="copy" /></button>
    <span class="small muted" role="status">${said}</span></span>`;
}
