/** What happened to a connector, other than batches: one list explains more than several. */
import { html } from "../dom.js";
import { visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Failure, Loading, Nothing, Time } from "../parts/states.js";
import { ask, place } from "../routes.js";

const KINDS = { state: "good", restart: "wait", config: "idle", offsets: "warn", replay: "warn", rebalance: "idle", retry: "wait", circuit: "bad", maintenance: "idle" };

/** @param {{connector: string}} props */
export function Events({ connector }) {
  const asked = place.value.query.kind ?? "";
  const { data, error, again } = useAnswer("timeline", { connector }, { every: 3000 });
  if (!data) return error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="events" />`;
  const all = data.events ?? data;
  const kinds = [...new Set(all.map((event) => event.kind))].sort();
  const found = asked ? all.filter((event) => event.kind === asked) : all;
  return html`<section class="card section"><header><h2>Events</h2>${data.since_ms && html`<span class="hint">since <${Time} ms=${data.since_ms} /></span>`}
      <label class="field push">Kind <select value=${asked} onChange=${(event) => ask({ kind: event.target.value || undefined })}><option value="">any</option>${kinds.map((kind) => html`<option value=${kind} selected=${kind === asked}>${visibleLine(kind)}</option>`)}</select></label></header>
    ${found.length === 0
      ? html`<${Nothing} title="No events"><p>${asked ? "None of this kind." : "Nothing but batches has happened since this worker took the connector."}</p><//>`
      : html`<div class="table-frame" tabindex="0" role="region" aria-label="Events"><table class="plain"><thead><tr><th scope="col">When</th><th scope="col">Kind</th><th scope="col">What</th><th scope="col">Who</th></tr></thead>
        <tbody>${found.map((event) => html`<tr><td><${Time} ms=${event.at_ms} /></td><td><span class="state tone-${KINDS[event.kind] ?? "idle"}">${visibleLine(event.kind)}</span></td><td class="wrap-anywhere">${visible(event.text)}</td><td>${visibleLine(event.user)}</td></tr>`)}</tbody></table></div>`}</section>`;
}
