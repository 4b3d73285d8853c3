/** What an opened row of the overview shows: why it is as it is, and what one can do. */
import { html } from "../dom.js";
import { count, rate, span, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { href } from "../routes.js";
import { can } from "../store.js";
import { Actions } from "./actions.js";
import { Ago, HEALTHS, Time, Trace } from "./states.js";

/** @param {{row: any}} props */
export function RowDetails({ row }) {
  const { data } = useAnswer("connector", { connector: row.name });
  return html`<div class="details">
    <p class="wrap-anywhere">${data?.trace_at_ms && html`<${Time} ms=${data.trace_at_ms} /> `}${visible(row.reason ?? HEALTHS[row.health]?.means ?? "")}</p>
    <dl class="facts">
      <div><dt>Class</dt><dd>${visibleLine(row.class)} (${visibleLine(row.type)})</dd></div>
      <div><dt>Worker</dt><dd>${visibleLine(row.worker)}, ${row.running}/${row.tasks} tasks</dd></div>
      <div><dt>Records/s · lag</dt><dd>${rate(row.rate)} · ${count(row.lag)}</dd></div>
      <div><dt>Last commit</dt><dd><${Ago} ms=${row.last_commit_ms} />, fresh ${row.fresh_ms ? span(row.fresh_ms) : "now"}</dd></div>
      <div><dt>Rows · rejected</dt><dd>${count(row.rows)} · ${count(row.rejected)}</dd></div>
    </dl>
    <div class="row"><${Actions} name=${row.name} state=${row.state} small=${true} />
      ${can("edit") && html`<a class="button small" href=${href("connector", { name: row.name, tab: "config" })}>Config</a>`}
      <a class="button small" href=${href("connector", { name: row.name })}>Open</a></div>
    ${data?.trace && html`<${Trace} trace=${data.trace} />`}
  </div>`;
}
