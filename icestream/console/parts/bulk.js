/** Actions on the selected connectors; how it went is told for each. */
import { ACTIONS, actOnAll } from "../actions.js";
import { html, useState } from "../dom.js";
import { of, visibleLine } from "../format.js";
import { Copyable } from "./copy.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icons.js";

/** @param {{names: string[], onClear: () => void}} props */
export function BulkBar({ names, onClear }) {
  const [done, setDone] = useState(/** @type {number | null} */ (null));
  const [outcomes, setOutcomes] = useState(/** @type {{verb: string, found: any[]} | null} */ (null));
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
    ${done !== null && html`<span class="small muted" role="status">${done} of ${names.length}</span>`}
    <button class="button plain small push" type="button" onClick=${onClear}><${Icon} name="close" />Clear</button>
  </div></div>
  ${outcomes && html`<${Outcomes} outcomes=${outcomes.found} verb=${outcomes.verb} onClose=${() => setOutcomes(null)} />`}`;
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
