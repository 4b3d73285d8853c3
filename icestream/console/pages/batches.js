/** The batches of a connector: the one under way, and those that the worker remembers, with their stages. */
import { html, useState } from "../dom.js";
import { batchesOf } from "../facts.js";
import { bytes, count, of, span, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Dialog } from "../parts/dialog.js";
import { Failure, Loading, Nothing, Time } from "../parts/states.js";
import { STAGES, StageBar, StageLegend, wallOf } from "../parts/timeline.js";
import { ask, place } from "../routes.js";

/** @type {Record<string, {word: string, tone: string}>} */
const OUTCOMES = {
  "under-way": { word: "under way", tone: "idle" },
  committed: { word: "committed", tone: "good" },
  empty: { word: "nothing to write", tone: "idle" },
  "run-again": { word: "run again", tone: "wait" },
  cut: { word: "cut", tone: "warn" },
  conflict: { word: "conflict", tone: "warn" },
  unknown: { word: "not known yet", tone: "warn" },
  unavailable: { word: "not available", tone: "wait" },
  cancelled: { word: "cancelled", tone: "idle" },
  failed: { word: "failed", tone: "bad" },
};

/** @param {{connector: string}} props */
export function Batches({ connector }) {
  const asked = place.value.query.outcome ?? "";
  const { data, error, again } = useAnswer("batches", { connector, limit: 200 }, { every: 2000 });
  if (!data) return error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="batches" />`;
  const all = batchesOf(data);
  const found = asked ? all.filter((batch) => batch.outcome === asked) : all;
  const outcomes = [...new Set(all.map((batch) => batch.outcome))];
  return html`<section class="card section"><header><h2>Batches</h2><${StageLegend} />
      <label class="field push">Outcome <select value=${asked} onChange=${(event) => ask({ outcome: event.target.value || undefined })}><option value="">any</option>
        ${outcomes.map((outcome) => html`<option value=${outcome} selected=${outcome === asked}>${OUTCOMES[outcome]?.word ?? outcome}</option>`)}</select></label></header>
    <${BatchTable} batches=${found} error=${null} isFiltered=${Boolean(asked)} />
    ${data.since_ms && html`<p class="body hint">The worker remembers batches since <${Time} ms=${data.since_ms} />; commits are in the table for good.</p>`}</section>`;
}

/** @param {{batches: any[] | null, error: any, isFiltered?: boolean}} props */
export function BatchTable({ batches, error, isFiltered = false }) {
  const [opened, setOpened] = useState(/** @type {any} */ (null));
  if (!batches) return error ? html`<${Failure} error=${error} />` : html`<${Loading} what="batches" />`;
  if (batches.length === 0) {
    return html`<${Nothing} title="No batches"><p>${isFiltered ? "None that the worker remembers ended so." : "The worker remembers none. They appear here when records come; what was committed before is under Commits."}</p><//>`;
  }
  const longest = Math.max(...batches.map((batch) => batch.seconds ?? 0));
  return html`<div class="table-frame" tabindex="0" role="region" aria-label="Batches"><table class="plain">
    <thead><tr><th scope="col">Started</th><th scope="col">Outcome</th><th scope="col" class="number">Records</th><th scope="col" class="number">Took</th><th scope="col">Stages</th><th scope="col">What came of it</th></tr></thead>
    <tbody>${batches.map(
      (batch) => html`<tr key=${batch.id}><td><button class="link-button" type="button" onClick=${() => setOpened(batch)}><${Time} ms=${batch.started_ms} /></button></td>
        <td class="outcome"><${Outcome} outcome=${batch.outcome} /></td><td class="number">${count(batch.read || batch.planned)}</td><td class="number">${span((batch.seconds ?? 0) * 1000)}</td>
        <td class="stages-cell"><${StageBar} batch=${batch} longest=${longest} /></td><td class="batch-note">${resultOf(batch)}</td></tr>`,
    )}</tbody></table></div>
    ${opened && html`<${BatchDialog} batch=${batches.find((batch) => batch.id === opened.id) ?? opened} onClose=${() => setOpened(null)} />`}`;
}

/** @param {{outcome: string}} props */
function Outcome({ outcome }) {
  const { word, tone } = OUTCOMES[outcome] ?? { word: visibleLine(outcome), tone: "idle" };
  return html`<span class="state tone-${tone}">${outcome === "under-way" && html`<span class="spin"></span>`}${word}</span>`;
}

function resultOf(batch) {
  const files = batch.targets.reduce((sum, target) => sum + target.files, 0);
  const size = batch.targets.reduce((sum, target) => sum + (target.bytes ?? 0), 0);
  const said = [
    batch.tasks > 0 && of(batch.tasks, "task"),
    files > 0 && of(files, "file"),
    size > 0 && bytes(size),
    batch.rejected > 0 && `${count(batch.rejected)} rejected`,
    batch.filtered > 0 && `${count(batch.filtered)} filtered`,
    batch.note && visibleLine(batch.note),
  ];
  return said.filter(Boolean).join(" · ");
}

function BatchDialog({ batch, onClose }) {
  const wall = Object.fromEntries(wallOf(batch));
  return html`<${Dialog} wide=${true} title=${html`Batch of <${Time} ms=${batch.started_ms} millis=${true} />`} onClose=${onClose}>
    <div class="row"><${Outcome} outcome=${batch.outcome} /><span class="small muted mono wrap-anywhere">${visibleLine(batch.id)}</span></div>
    ${batch.note && html`<p class="small wrap-anywhere">${visible(batch.note)}</p>`}
    <dl class="facts">
      <div><dt>Read</dt><dd>${count(batch.read)} records, ${bytes(batch.bytes)}</dd></div>
      <div><dt>Written</dt><dd>${count(batch.written)}</dd></div>
      <div><dt>Rejected</dt><dd>${count(batch.rejected)}${byWhat(batch.rejectedBy)}</dd></div>
      <div><dt>Filtered</dt><dd>${count(batch.filtered)}${byWhat(batch.filteredBy)}</dd></div>
      <div><dt>Lag after it</dt><dd>${count(batch.lag_after)}</dd></div>
      <div><dt>Valid through</dt><dd><${Time} ms=${batch.valid_through_ms} millis=${true} /></dd></div>
      <div><dt>Tasks</dt><dd>${count(batch.tasks)}, the longest ${span((batch.longest_task ?? 0) * 1000)}</dd></div>
    </dl>
    <${StageBar} batch=${batch} longest=${0} />
    <div class="table-frame"><table class="plain"><thead><tr><th scope="col">Stage</th><th scope="col" class="number">Seconds, summed over tasks</th><th scope="col" class="number">Share of the wall time</th></tr></thead>
      <tbody>${STAGES.filter((stage) => stage in batch.stages).map((stage) => html`<tr key=${stage}><td><span class="row"><i class="stage-${stage} swatch"></i>${stage}</span></td><td class="number">${span(batch.stages[stage] * 1000)}</td><td class="number">${span((wall[stage] ?? 0) * 1000)}</td></tr>`)}</tbody></table></div>
    ${batch.targets.length > 0 && html`<div class="table-frame"><table class="plain"><thead><tr><th scope="col">Target</th><th scope="col">Commit</th><th scope="col" class="number">Rows</th><th scope="col" class="number">Files</th><th scope="col" class="number">Bytes</th></tr></thead>
      <tbody>${batch.targets.map((target) => html`<tr key=${target.name}><td class="wrap-anywhere">${visibleLine(target.name)}</td><td class="mono wrap-anywhere">${visibleLine(target.id) || "–"}</td><td class="number">${count(target.rows)}</td><td class="number">${count(target.files)}</td><td class="number">${bytes(target.bytes)}</td></tr>`)}</tbody></table></div>`}
  <//>`;
}

function byWhat(parts) {
  const words = Object.entries(parts).filter(([, value]) => value > 0).map(([what, value]) => `${visibleLine(what)} ${count(value)}`);
  return words.length ? ` (${words.join(", ")})` : "";
}
