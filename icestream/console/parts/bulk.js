/** Actions on the selected connectors; how it went is told for each. */
import { ACTIONS, actOnAll } from "../actions.js";
import { send } from "../api.js";
import { html, useState } from "../dom.js";
import { of, visibleLine } from "../format.js";
import { Copyable } from "./copy.js";
import { can } from "../store.js";
import { Confirm, Dialog } from "./dialog.js";
import { Icon } from "./icons.js";
import { say } from "./toast.js";

/** @param {{names: string[], onClear: () => void}} props */
export function BulkBar({ names, onClear }) {
  const [done, setDone] = useState(/** @type {number | null} */ (null));
  const [outcomes, setOutcomes] = useState(/** @type {{verb: string, found: any[]} | null} */ (null));
  const [isDeleting, setDeleting] = useState(false);
  const remove = async () => {
    const found = await removed(names, setDone);
    setDone(null);
    setDeleting(false);
    const refused = found.filter((outcome) => !outcome.isGood).length;
    say(`${of(names.length - refused, "connector")} deleted${refused ? `, ${refused} not` : ""}`, refused ? "bad" : "good");
    if (refused) setOutcomes(found);
    else onClear();
  };
  const run = async (verb) => {
    setDone(0);
    const found = await actOnAll(names, verb, setDone);
    setDone(null);
    if (found.some((outcome) => !outcome.isGood)) setOutcomes({ verb, found });
    else onClear();
  };
  return html`<div class="bulk" role="region" aria-label="Selected connectors"><div class="bulk-line">
    <strong>${of(names.length, "connector")} selected</strong>
    ${Object.entries(ACTIONS).map(
      ([verb, { title, icon }]) => html`<button key=${verb} class="button small" type="button" disabled=${done !== null} onClick=${() => run(verb)}><${Icon} name=${icon} />${title}</button>`,
    )}
    ${can("edit") && html`<button class="button small danger" type="button" disabled=${done !== null} onClick=${() => setDeleting(true)}><${Icon} name="trash" />Delete…</button>`}
    ${done !== null && html`<span class="small muted" role="status">${done} of ${names.length}</span>`}
    <button class="button plain small push" type="button" onClick=${onClear}><${Icon} name="close" />Clear</button>
  </div></div>
  ${isDeleting && html`<${Confirm} title="Delete ${of(names.length, "connector")}?" verb="Delete" danger=${true} typed=${`delete ${names.length}`} onYes=${remove} onClose=${() => setDeleting(false)}>
    <p>Their configs and histories are gone then. Topics, tables and dead letters stay.</p>
    <ul class="outcomes">${names.slice(0, 50).map((name) => html`<li key=${name}>${visibleLine(name)}</li>`)}</ul>
    ${names.length > 50 && html`<p class="small muted">and ${names.length - 50} more</p>`}<//>`}
  ${outcomes && html`<${Outcomes} outcomes=${outcomes.found} verb=${outcomes.verb} onClose=${() => setOutcomes(null)} />`}`;
}

/** One after the other: each deletion changes what all workers run. */
async function removed(names, onProgress) {
  const outcomes = [];
  for (const name of names) {
    try {
      await send("DELETE", "connector", { query: { connector: name } });
      outcomes.push({ name, isGood: true, text: "deleted" });
    } catch (error) {
      outcomes.push({ name, isGood: false, text: `${visibleLine(name)}: ${visibleLine(error.message)}` });
    }
    onProgress(outcomes.length);
  }
  return outcomes;
}

/** @param {{outcomes: {name: string, isGood: boolean, text: string}[], verb: string, onClose: () => void}} props */
function Outcomes({ outcomes, verb, onClose }) {
  const refused = outcomes.filter((outcome) => !outcome.isGood);
  return html`<${Dialog} title="${of(refused.length, "connector")} did not follow" onClose=${onClose}>
    <ul class="outcomes">${refused.map((outcome) => html`<li key=${outcome.name}>${visibleLine(outcome.text)}</li>`)}</ul>
    <${Copyable} what="command" text=${commandOf(verb, refused.map((outcome) => outcome.name))} />
    <p class="small muted">${of(outcomes.length - refused.length, "other")} did.</p><//>`;
}

/** The same on the command line. @param {string} verb @param {string[]} names */
function commandOf(verb, names) {
  return `icestream connector ${verb} ${names.map((name) => `'${visibleLine(name).replaceAll("'", "'\\''")}'`).join(" ")}`;
}
