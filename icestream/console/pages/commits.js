/** The commits of a connector as its targets tell them: this history survives every restart. */
import { html } from "../dom.js";
import { count, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Failure, Loading, Note, Nothing, Time } from "../parts/states.js";

/** @param {{connector: string}} props */
export function Commits({ connector }) {
  const { data, error, again } = useAnswer("commits", { connector }, { every: 15_000 });
  if (!data && error) return html`<${Failure} error=${error} retry=${again} />`;
  return html`<section class="card section"><header><h2>Commits</h2><span class="hint">read from the targets themselves</span></header>
    <${CommitTable} answer=${data} error=${error} /></section>`;
}

/** @param {{answer: any, error: any, most?: number}} props */
export function CommitTable({ answer, error, most = Infinity }) {
  if (!answer) return error ? html`<${Failure} error=${error} />` : html`<${Loading} what="commits" />`;
  const commits = (answer.commits ?? answer).slice(0, most);
  const notes = answer.note ? [answer.note] : (answer.notes ?? []);
  const said = notes.map((note) => html`<div class="body"><${Note} key=${note} tone="warn"><p>${visible(note)}</p><//></div>`);
  if (commits.length === 0) {
    return html`${said}${notes.length === 0 && html`<${Nothing} title="No commits"><p>The target has none of this connector yet, or it is one that keeps no history.</p><//>`}`;
  }
  return html`${said}<div class="table-frame" tabindex="0" role="region" aria-label="Commits"><table class="plain">
    <thead><tr><th scope="col">Committed</th><th scope="col">Target</th><th scope="col">Snapshot</th><th scope="col" class="number">Rows</th><th scope="col" class="number">Files</th><th scope="col" class="number">Rejected</th><th scope="col" class="number">Filtered</th><th scope="col">Valid through</th><th scope="col">Commit</th></tr></thead>
    <tbody>${commits.map((one) => html`<tr key=${`${one.target} ${one.id}`}><td><${Time} ms=${one.at_ms} /></td><td class="wrap-anywhere">${visibleLine(one.target ?? one.table)}</td>
      <td class="mono wrap-anywhere">${visibleLine(one.id ?? one.snapshot)}</td><td class="number">${count(one.rows)}</td><td class="number">${count(one.files)}</td>
      <td class="number">${count(one.rejected)}</td><td class="number">${count(one.filtered)}</td><td><${Time} ms=${one.valid_through_ms} /></td>
      <td class="mono" title=${visibleLine(one.commit_id)}>${visibleLine(one.commit_id).slice(0, 8)}</td></tr>`)}</tbody></table></div>`;
}
