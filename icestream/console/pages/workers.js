/** The workers of the group: who is there, what each runs, and how the work moved between them. */
import { html } from "../dom.js";
import { count, of, span, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Icon } from "../parts/icons.js";
import { Failure, Loading, Note, Nothing, Time } from "../parts/states.js";
import { href } from "../routes.js";
import { me } from "../store.js";

export function Workers() {
  const { data, error, again } = useAnswer("workers", {}, { every: 3000 });
  if (!data) return error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="workers" />`;
  const members = data.members ?? [];
  const rebalances = data.rebalances ?? [];
  const isAlone = (data.mode ?? me.value?.mode) === "standalone";
  return html`<div class="page-head"><h1>Workers</h1>${data.generation !== undefined && data.generation !== null && html`<span class="small muted">generation ${count(data.generation)}</span>`}</div>
    ${error && html`<${Note} tone="warn" title="What you see is old"><p>${visible(error.message)}</p><//>`}
    <section class="card section"><header><h2>Members</h2><span class="hint push">${of(members.length, "worker")}</span></header>
      <div class="table-frame" tabindex="0" role="region" aria-label="Members"><table class="plain">
      <thead><tr><th scope="col">Worker</th><th scope="col">State</th><th scope="col">Role</th><th scope="col" class="number">Connectors</th><th scope="col">Version</th></tr></thead>
      <tbody>${members.map((one) => html`<${Member} key=${one.worker ?? one.url} one=${one} leader=${data.leader} isAlone=${isAlone} />`)}</tbody></table></div></section>
    <section class="card section"><header><h2>Rebalances</h2></header>
      ${rebalances.length === 0
        ? html`<${Nothing} title="No rebalance"><p>${isAlone ? "This worker runs alone: there is nobody to share with." : "None since this worker has started."}</p><//>`
        : html`<div class="table-frame" tabindex="0" role="region" aria-label="Rebalances"><table class="plain"><thead><tr><th scope="col">When</th><th scope="col">What</th><th scope="col" class="number">Took</th><th scope="col">Gained</th><th scope="col">Lost</th></tr></thead>
          <tbody>${rebalances.map((one) => html`<tr key=${`${one.at_ms} ${one.generation}`}><td><${Time} ms=${one.at_ms} /></td><td class="wrap-anywhere">${visible(one.text ?? (one.generation !== undefined ? `generation ${one.generation}` : ""))}</td>
            <td class="number">${span(one.took_ms ?? (one.seconds ?? 0) * 1000)}</td><td class="wrap-anywhere">${namesOf(one.gained)}</td><td class="wrap-anywhere">${namesOf(one.lost)}</td></tr>`)}</tbody></table></div>`}</section>`;
}

function Member({ one, leader, isAlone }) {
  const worker = one.worker ?? one.url ?? "";
  const isLeader = one.is_leader ?? (leader && (leader === one.url || leader === worker));
  const connectors = Array.isArray(one.connectors) ? one.connectors.length : one.connectors;
  const isGone = one.answers === false || one.is_cut_off;
  return html`<tr><td class="wrap-anywhere"><strong>${visibleLine(worker)}</strong>${one.is_here && html` <span class="muted">(this one)</span>`}</td>
    <td><span class="state tone-${isGone ? "bad" : "good"}"><${Icon} name=${isGone ? "warning" : "check"} size=${14} />${isGone ? "does not answer" : "here"}</span>${one.reason && html` <span class="muted">${visibleLine(one.reason)}</span>`}</td>
    <td>${isAlone ? "alone" : isLeader ? "leader" : "member"}</td>
    <td class="number"><a href=${href("connectors", { query: { worker: one.worker } })}>${count(connectors)}</a></td>
    <td>${visibleLine(one.version ?? "")}</td></tr>`;
}

function namesOf(names) {
  if (!names?.length) return "–";
  const few = names.slice(0, 8).map(visibleLine).join(", ");
  return names.length > 8 ? `${few} and ${count(names.length - 8)} more` : few;
}
