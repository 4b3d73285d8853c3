/** The first tab of a connector: lag, rates, freshness, the books, partitions, the last batches and commits. */
import { html } from "../dom.js";
import { batchesOf, historyOf, unbalanced } from "../facts.js";
import { count, of, rate, span, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Icon } from "../parts/icons.js";
import { Plot } from "../parts/plot.js";
import { Ago, Note, Time } from "../parts/states.js";
import { StageLegend } from "../parts/timeline.js";
import { href, place } from "../routes.js";
import { now } from "../store.js";
import { BatchTable } from "./batches.js";
import { CommitTable } from "./commits.js";

const FEW = 6;

/** @param {{connector: string, facts: any}} props */
export function ConnectorOverview({ connector, facts }) {
  const range = place.value.query.range ?? "1h";
  const history = useAnswer("history", { connector, range }, { every: 10_000 });
  const batches = useAnswer("batches", { connector, limit: 100 }, { every: 2000 });
  const commits = useAnswer("commits", { connector, limit: FEW }, { every: 5000 });
  const known = batches.data && batchesOf(batches.data);
  return html`
    <div class="plots"><${Plots} facts=${facts} history=${history} /><${Books} books=${facts.books} wrong=${unbalanced(known ?? [])} connector=${connector} facts=${facts} /></div>
    ${facts.partitions.length > 0 && html`<${Partitions} facts=${facts} />`}
    <section class="card section"><header><h2>Batches</h2><${StageLegend} /><a class="small push" href=${href("connector", { name: connector, tab: "batches" })}>All batches</a></header>
      <${BatchTable} batches=${known?.slice(0, FEW)} error=${batches.error} /></section>
    <section class="card section"><header><h2>Commits</h2><span class="hint">as the targets tell them</span><a class="small push" href=${href("connector", { name: connector, tab: "commits" })}>All commits</a></header>
      <${CommitTable} answer=${commits.data} error=${commits.error} most=${FEW} /></section>
    ${facts.warnings.length > 0 && html`<section class="card section"><header><h2>Warnings</h2></header><div class="body stack">
      ${facts.warnings.map((warning) => html`<${Note} key=${warning} tone="warn"><p>${visibleLine(warning)}</p><//>`)}</div></section>`}`;
}

function Plots({ facts, history }) {
  const { times, series } = history.data ? historyOf(history.data) : { times: [], series: {} };
  const lines = (...wanted) => wanted.filter(([key]) => series[key]).map(([key, label, color]) => ({ label, values: series[key], color }));
  const newest = (key) => series[key]?.findLast((value) => value !== null);
  return html`
    <${Plot} title="Lag" times=${times} lines=${lines(["lag", "lag", "--stage-read"])} format=${count}
      value=${html`${count(facts.lag)} <small>records</small>`} />
    <${Plot} title="Records/s" times=${times} lines=${lines(["in", "in", "--stage-read"], ["out", "out", "--stage-commit"])} format=${rate}
      value=${rate(facts.rate ?? newest("out"))} />
    <${Plot} title="Freshness" times=${times} lines=${lines(["freshness", "behind", "--stage-transform"])} format=${(value) => span(value === null ? null : value * 1000)}
      axis=${(value) => span(value * 1000)} value=${facts.fresh === 0 ? "up to date" : span(facts.fresh)} />`;
}

/** Nothing is dropped in silence: what was read is somewhere. */
function Books({ books, wrong, connector, facts }) {
  return html`<section class="card" aria-label="Books"><header><h2>Books</h2><span class="hint">since the first batch</span></header>
    <dl class="body books">
      <div><dt>read</dt><dd>${count(books.read)}</dd></div>
      <div><dt>= written</dt><dd>${count(books.written)}</dd></div>
      <div><dt>+ rejected${books.rejected > 0 && html` <a href=${href("connector", { name: connector, tab: "letters" })}>dead letters</a>`}</dt><dd>${count(books.rejected)}</dd></div>
      <div><dt>+ filtered</dt><dd>${count(books.filtered)}</dd></div>
    </dl>
    <div class="books-sum">${wrong.length > 0
        ? html`<span class="state tone-bad" title="Batches that read another number of records than they wrote, rejected and filtered"><${Icon} name="warning" size=${14} />${of(wrong.length, "batch does", "batches do")} not add up</span>`
        : html`<span class="state tone-good"><${Icon} name="check" size=${14} />balanced</span>`}
        <span class="push small muted">last commit <${Ago} ms=${facts.lastCommit} /></span></div></section>`;
}

function Partitions({ facts }) {
  const most = Math.max(1, ...facts.partitions.map((one) => one.lag));
  const sum = facts.partitions.reduce((total, one) => total + one.lag, 0);
  const catchUp = sum > 0 && facts.rate > 0 ? `caught up in about ${span((sum / facts.rate) * 1000)}, if nothing more came` : sum === 0 ? "caught up" : "";
  const order = [...facts.partitions].sort((one, other) => other.lag - one.lag || (one.topic < other.topic ? -1 : one.topic > other.topic ? 1 : one.partition - other.partition));
  const shown = order.slice(0, 200);
  return html`<section class="card section"><header><h2>Lag by partition</h2><span class="hint push">${catchUp}</span></header>
    <div class="table-frame"><table class="plain"><thead><tr><th scope="col">Partition</th><th scope="col"><span class="unseen">Share</span></th><th scope="col" class="number">Next offset</th><th scope="col" class="number">End</th><th scope="col" class="number">Lag</th><th scope="col">Newest record written</th></tr></thead>
    <tbody>${shown.map(
      (one) => html`<tr key=${`${one.topic}-${one.partition}`}><td class="wrap-anywhere">${visibleLine(one.topic)}-${one.partition}</td>
        <td class="meter-cell"><span class="meter" style=${{ width: `${(one.lag / most) * 100}%` }}></span></td>
        <td class="number">${count(one.next)}</td><td class="number">${count(one.end)}</td><td class="number"><strong>${count(one.lag)}</strong></td>
        <td>${one.newest === null ? "–" : html`<${Time} ms=${one.newest} /> <span class="muted">(${span(now.value - one.newest)} ago)</span>`}</td></tr>`,
    )}</tbody></table></div>
    ${order.length > shown.length && html`<p class="body hint">and ${count(order.length - shown.length)} partitions with less lag</p>`}</section>`;
}
