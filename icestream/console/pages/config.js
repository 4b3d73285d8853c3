/** The config of a connector: edit, look at what changes, save; and what to do if somebody was faster. */
import { ApiError, send } from "../api.js";
import { changed, threeWay } from "../config_model.js";
import { html, useState } from "../dom.js";
import { of, visible } from "../format.js";
import { useAnswer } from "../load.js";
import { Dialog } from "../parts/dialog.js";
import { Diff, Value } from "../parts/diff.js";
import { Editor, useEditing } from "../parts/editor.js";
import { Failure, Loading, Nothing, Note } from "../parts/states.js";
import { say } from "../parts/toast.js";
import { can, me } from "../store.js";

/** @param {{connector: string, detail?: any, again?: () => void}} props */
export function Config({ connector, again }) {
  const mayEdit = can("edit");
  const { data, error, again: load } = useAnswer(mayEdit ? "config" : null, { connector });
  const [stored, setStored] = useState(/** @type {any} */ (null));
  if (!me.value) return html`<${Loading} what="the config" />`;
  if (!mayEdit) {
    return html`<${Nothing} title="Configs are not shown at this level"><p>They need the level <code>edit</code>; the worker's config sets it with <code>icestream.console</code>.</p><//>`;
  }
  const found = stored?.name === connector ? stored : data;
  if (!found) return error ? html`<${Failure} error=${error} retry=${load} />` : html`<${Loading} what="the config" />`;
  const saved = (answer) => {
    setStored(answer);
    again?.();
  };
  return html`<${ConfigEditor} key=${connector} found=${found} onSaved=${saved} />`;
}

/** @param {{found: any, onSaved: (answer: any) => void}} props */
function ConfigEditor({ found, onSaved }) {
  const editing = useEditing({ connector: found.name, base: found.config, masked: found.masked });
  const [isSaving, setSaving] = useState(false);
  const [conflict, setConflict] = useState(/** @type {any} */ (null));
  const count = Object.keys(editing.changes).length;
  const tools = html`<span class="row push">
    ${editing.errorCount > 0 && html`<span class="state tone-bad" role="status">${of(editing.errorCount, "error")}</span>`}
    <button class="button" type="button" disabled=${!count} onClick=${() => editing.setChanges({})}>Discard</button>
    <button class="button primary" type="button" disabled=${!count} onClick=${() => setSaving(true)}>${count ? `Save ${of(count, "change")}…` : "Save…"}</button>
  </span>`;
  const take = (answer) => {
    setSaving(false);
    editing.setChanges({});
    onSaved(answer);
    say("Saved. The connector goes on with the new config.", "good");
  };
  return html`<div class="stack">
    <${Editor} editing=${editing} tools=${tools} />
    ${found.masked.length > 0 && html`<p class="small muted">Secrets are hidden here. Whoever may read <code>/connectors</code> of this worker still gets them there.</p>`}
    ${isSaving && html`<${SaveDialog} found=${found} editing=${editing} onSaved=${take} onClose=${() => setSaving(false)}
      onConflict=${(now) => { setSaving(false); setConflict(now); }} />`}
    ${conflict && html`<${ConflictDialog} began=${found.config} now=${conflict} ours=${editing.changes} secrets=${editing.secrets} onClose=${() => setConflict(null)}
      onTaken=${(changes) => { onSaved(conflict); editing.setChanges(changes); setConflict(null); }} />`}
  </div>`;
}

function SaveDialog({ found, editing, onSaved, onConflict, onClose }) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const save = async () => {
    setBusy(true);
    setProblem("");
    try {
      onSaved(await send("PATCH", "config", { query: { connector: found.name }, body: editing.changes, headers: { "If-Match": `"${found.version}"` } }));
    } catch (error) {
      setBusy(false);
      if (error instanceof ApiError && error.body?.conflict) return onConflict(error.body.now);
      if (error instanceof ApiError && error.body?.errors) {
        editing.refuse(error.body.errors);
        say("Nothing was saved: the errors are at their keys.", "bad");
        return onClose();
      }
      setProblem(error.message);
    }
    return undefined;
  };
  const footer = html`${isBusy && html`<span class="row small muted" role="status"><span class="spin"></span>Checking what the config points at…</span>`}
    <button class="button" type="button" onClick=${onClose}>Cancel</button>
    <button class="button primary" type="button" disabled=${isBusy} onClick=${save}>Save</button>`;
  return html`<${Dialog} title="Save ${of(Object.keys(editing.changes).length, "change")}?" wide=${true} onClose=${onClose} footer=${footer}>
    <${Diff} base=${found.config} changes=${editing.changes} secrets=${editing.secrets} />
    ${editing.errorCount > 0 && html`<${Note} tone="warn">The config still has ${of(editing.errorCount, "error")}: the worker will refuse it.<//>`}
    ${problem && html`<${Note} tone="bad" title="Not saved">${visible(problem)}<//>`}
  <//>`;
}

/** Somebody else has saved since: what it was, what it is now, and what we want, for each key. */
function ConflictDialog({ began, now, ours, secrets, onTaken, onClose }) {
  const rows = threeWay(began, now.config, ours);
  const [kept, setKept] = useState(() => new Set(rows.filter((row) => row.ours !== undefined).map((row) => row.key)));
  const choose = (key, isOurs) => setKept((before) => {
    const after = new Set(before);
    if (isOurs) after.add(key);
    else after.delete(key);
    return after;
  });
  const take = () => {
    let changes = {};
    for (const row of rows) if (row.ours !== undefined && kept.has(row.key)) changes = changed(now.config, changes, row.key, row.ours);
    onTaken(changes);
  };
  const footer = html`<button class="button" type="button" onClick=${onClose}>Back to my edit</button>
    <button class="button primary" type="button" onClick=${take}>Go on from what is stored</button>`;
  return html`<${Dialog} title="Somebody else has changed this config" wide=${true} onClose=${onClose} footer=${footer}>
    <p>Nothing of yours was saved. Choose for each key; then look at the changes again and save.</p>
    <table class="plain" aria-label="Conflicting changes">
      <thead><tr><th scope="col">Key</th><th scope="col">When you began</th><th scope="col">Stored now</th><th scope="col">Yours</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.key} data-both=${row.isBoth ? "true" : undefined}>
        <th scope="row"><code class="wrap-anywhere">${visible(row.key)}</code>${row.isBoth && html` <span class="tag changed">both</span>`}</th>
        <td><${Value} text=${row.began} /></td>
        <td>${row.ours === undefined ? html`<${Value} text=${row.now} />` : html`<label class="field"><input type="radio" name=${`keep ${row.key}`} checked=${!kept.has(row.key)} onChange=${() => choose(row.key, false)} /><${Value} text=${row.now} /></label>`}</td>
        <td>${row.ours === undefined ? html`<span class="muted">not changed</span>` : html`<label class="field"><input type="radio" name=${`keep ${row.key}`} checked=${kept.has(row.key)} onChange=${() => choose(row.key, true)} /><${Value} text=${row.ours} is="new" isSecret=${secrets.has(row.key)} /></label>`}</td>
      </tr>`)}</tbody></table>
    ${!rows.length && html`<p class="muted">What is shown is the same; a secret may have changed, or the worker was started anew.</p>`}
    ${now.masked.length > 0 && html`<p class="small muted">Of secrets only you know whether they are others now.</p>`}
  <//>`;
}
