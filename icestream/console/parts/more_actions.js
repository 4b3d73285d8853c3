/** Verify, delete and what else is seldom done to a connector. */
import { send } from "../api.js";
import { html, useState } from "../dom.js";
import { visible, visibleLine } from "../format.js";
import { go, href } from "../routes.js";
import { can } from "../store.js";
import { Confirm, Dialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { Note } from "./states.js";
import { say } from "./toast.js";

/** @param {{name: string, state: string}} props */
export function MoreActions({ name }) {
  const [asked, setAsked] = useState("");
  const close = () => setAsked("");
  return html`
    ${can("operate") && html`<button class="button" type="button" onClick=${() => setAsked("verify")}><${Icon} name="check" />Verify</button>`}
    ${can("edit") && html`<a class="button" href=${href("new", { query: { copy: name } })}><${Icon} name="copy" />Copy</a>
      <button class="button danger" type="button" onClick=${() => setAsked("delete")}><${Icon} name="trash" />Delete…</button>`}
    ${asked === "verify" && html`<${VerifyDialog} name=${name} onClose=${close} />`}
    ${asked === "delete" && html`<${DeleteDialog} name=${name} onClose=${close} />`}`;
}

function DeleteDialog({ name, onClose }) {
  const remove = async () => {
    try {
      await send("DELETE", "connector", { query: { connector: name } });
      say(`${visibleLine(name)} is deleted.`, "good");
      onClose();
      go("connectors");
    } catch (error) {
      say(`${visibleLine(name)}: ${visibleLine(error.message)}`, "bad");
    }
  };
  return html`<${Confirm} title="Delete this connector?" verb="Delete" danger=${true} typed=${name} onYes=${remove} onClose=${onClose}>
    <p>Its config and its history are gone then. Its topics, tables and dead letters stay; a connector of the same name goes on where this one ended.</p><//>`;
}

/** Do the books balance? Topic, tables and dead letters are compared. */
function VerifyDialog({ name, onClose }) {
  const [isDeep, setDeep] = useState(false);
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setFound(null);
    setProblem("");
    try {
      setFound(await send("POST", "verify", { query: { connector: name, deep: isDeep } }));
    } catch (error) {
      setProblem(error.message);
    }
    setBusy(false);
  };
  const footer = html`<button class="button" type="button" onClick=${onClose}>Close</button>
    <button class="button primary" type="button" disabled=${isBusy} onClick=${run}>${found || problem ? "Verify again" : "Verify"}</button>`;
  return html`<${Dialog} title="Verify" onClose=${onClose} footer=${footer}>
    <p>Compares what the topics have with what tables and dead letters have: nothing missing, nothing twice. It only reads.</p>
    <label class="field"><input type="checkbox" checked=${isDeep} onChange=${(event) => setDeep(event.target.checked)} />Also the origin of every row, from the data files (takes longer)</label>
    <div role="status">${isBusy && html`<span class="row"><span class="spin"></span>Comparing…</span>`}
      ${found?.targets.map((one) => html`<${Note} key=${one.target} tone=${one.problems.length ? "bad" : one.unknown.length ? "warn" : "good"} title=${visibleLine(one.target)}>
        <p>${visible(one.line)}</p>${one.problems.map((text) => html`<p class="error">${visible(text)}</p>`)}${one.unknown.map((text) => html`<p class="small">${visible(text)}</p>`)}<//>`)}
      ${problem && html`<${Note} tone="bad" title="Nothing was compared">${visible(problem)}<//>`}</div>
  <//>`;
}
