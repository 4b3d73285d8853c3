/** Dead letters: groups by what was wrong, the records of a group, one record, and their way back. */
import { html, useEffect, useState } from "../dom.js";
import { count, of, shortClass, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Icon } from "../parts/icons.js";
import { LetterDialog } from "../parts/payload.js";
import { ReplayDialog } from "../parts/replay.js";
import { Ago, Failure, Loading, Nothing, Note, Time } from "../parts/states.js";
import { PlainTable } from "../parts/table.js";
import { ask, href, place } from "../routes.js";
import { can, rows } from "../store.js";

/** @param {{connector?: string}} props without a connector: those that have dead letters */
export function Letters({ connector }) {
  return connector ? html`<${Queue} key=${connector} connector=${connector} />` : html`<${AllQueues} />`;
}

function AllQueues() {
  if (!rows.value) return html`<${Loading} what="the connectors" />`;
  const rejecting = [...rows.value.values()].filter((row) => row.rejected > 0).sort((one, other) => other.rejected - one.rejected);
  if (!rejecting.length) {
    return html`<h1>Dead letters</h1><${Nothing} title="No connector has rejected a record"><p>A sink keeps what it rejects if its config has <code>errors.tolerance=all</code> and <code>errors.deadletterqueue.topic.name</code>.</p><//>`;
  }
  const columns = [
    { title: "Connector", cell: (row) => html`<a class="wrap-anywhere" href=${href("connector", { name: row.name, tab: "letters" })}>${visibleLine(row.name)}</a>` },
    { title: "Rejected", class: "number", cell: (row) => count(row.rejected) },
    { title: "Last commit", cell: (row) => html`<${Ago} ms=${row.last_commit_ms} />` },
  ];
  return html`<div class="stack"><h1>Dead letters</h1><section class="card"><${PlainTable} label="Connectors with dead letters" columns=${columns} rows=${rejecting} keyOf=${(row) => row.name} /></section></div>`;
}

/** @param {{connector: string}} props */
function Queue({ connector }) {
  const { group, where = "" } = place.value.query;
  const [replaying, setReplaying] = useState(/** @type {any} */ (null));
  const { data, error, again } = useAnswer("letters", { connector, where: where || undefined });
  if (!data) return error ? html`<${NoQueue} error=${error} retry=${again} where=${where} />` : html`<${Loading} what="dead letters" />`;
  const opened = data.groups.find((one) => one.id === group);
  return html`<div class="stack">
    <div class="row">
      <${Where} text=${where} />
      <span class="push row">
        <button class="button" type="button" onClick=${again}><${Icon} name="restart" />Look again</button>
        ${can("operate") && data.groups.length > 0 && html`<button class="button" type="button" onClick=${() => setReplaying({ where })}>Replay all…</button>`}
      </span>
    </div>
    <p class="small muted">${of(data.read, "dead letter")} of <code class="wrap-anywhere">${visibleLine(data.queue)}</code> looked at${data.cursor ? ", the newest; older ones are behind them" : ""}.
      ${data.has_lost_some ? " The queue has had more, which retention removed." : ""}</p>
    ${data.groups.length ? html`<${Groups} groups=${data.groups} opened=${group} onReplay=${(one) => setReplaying({ where, group: one.id, title: one.reason })} />` : html`<${NoMatch} where=${where} />`}
    ${data.more_groups > 0 && html`<${Note}>${of(data.more_groups, "more kind")} of dead letters, with fewer each; narrow the filter to see them.<//>`}
    ${group && html`<${Records} key=${group} connector=${connector} group=${group} where=${where} title=${opened?.reason} />`}
    ${replaying && html`<${ReplayDialog} connector=${connector} wanted=${replaying} onClose=${() => setReplaying(null)} onDone=${again} />`}
  </div>`;
}

function NoQueue({ error, retry, where }) {
  if (error.status === 404) {
    return html`<${Nothing} title="No dead letters"><p>${visible(error.message)}</p>
      <p>A sink keeps what it rejects with <code>errors.tolerance=all</code> and <code>errors.deadletterqueue.topic.name</code>; with <code>errors.deadletterqueue.context.headers.enable=true</code> it also keeps why.</p><//>`;
  }
  if (error.status === 400 && where) return html`<div class="stack"><${Where} text=${where} problem=${error.message} /></div>`;
  return html`<${Failure} error=${error} retry=${retry} />`;
}

function NoMatch({ where }) {
  if (!where) return html`<${Nothing} title="The queue has no dead letters of this connector" icon="check" />`;
  return html`<${Nothing} title="No dead letter matches"><button class="button" type="button" onClick=${() => ask({ where: undefined, group: undefined })}>Clear the filter</button><//>`;
}

/** The filter of the command line, in words. */
function Where({ text, problem }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  const apply = (event) => {
    event.preventDefault();
    ask({ where: typed.trim() || undefined, group: undefined });
  };
  return html`<form class="where-box" role="search" onSubmit=${apply}>
    <input type="search" aria-label="Filter dead letters" aria-invalid=${problem ? "true" : undefined} placeholder='topic=orders stage=TRANSFORMATION reason="does not fit" since=2026-11-15T10:30'
      autocomplete="off" spellcheck=${false} value=${typed} onInput=${(event) => setTyped(event.target.value)} />
    <button class="button" type="submit">Filter</button>
    ${problem && html`<p class="error" role="alert">${visible(problem)}</p>`}
  </form>`;
}

function Groups({ groups, opened, onReplay }) {
  const columns = [
    {
      title: "What was wrong",
      cell: (one) => html`<button class="link-button wrap-anywhere" type="button" aria-expanded=${one.id === opened} onClick=${() => ask({ group: one.id === opened ? undefined : one.id })}>${visible(one.reason) || "no reason told"}</button>
        <div class="small muted wrap-anywhere">${[one.stage, shortClass(one.exception), ...one.topics.map((topic) => visibleLine(topic))].filter(Boolean).join(" · ")}</div>`,
    },
    { title: "Letters", class: "number", cell: (one) => count(one.count) },
    { title: "Replayed", class: "number", cell: (one) => count(one.replayed) },
    { title: "First", cell: (one) => html`<${Time} ms=${one.first_ms} />` },
    { title: "Last", cell: (one) => html`<${Time} ms=${one.last_ms} />` },
    { title: html`<span class="unseen">Replay</span>`, cell: (one) => can("operate") && html`<button class="button small" type="button" onClick=${() => onReplay(one)} aria-label="Replay: ${one.reason}">Replay…</button>` },
  ];
  return html`<section class="card"><${PlainTable} label="Groups of dead letters" columns=${columns} rows=${groups} keyOf=${(one) => one.id} /></section>`;
}

function Records({ connector, group, where, title }) {
  const [before, setBefore] = useState(/** @type {string | undefined} */ (undefined));
  const [from, setFrom] = useState(0);
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const { data, error, again } = useAnswer("letters/records", { connector, group, where: where || undefined, before, from });
  if (!data) return error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="records" />`;
  const columns = [
    { title: "Record", cell: (one) => html`<button class="link-button mono nowrap" type="button" onClick=${() => setShown(one)}>${one.topic === null ? `queue ${one.queue.partition}@${one.queue.offset}` : `${visibleLine(one.topic)}-${one.partition}@${one.offset}`}</button>` },
    { title: "Time", cell: (one) => html`<${Time} ms=${one.time_ms} />` },
    { title: "Reason", cell: (one) => html`<span class="wrap-anywhere">${visible(one.reason)}</span>` },
    { title: "Value", cell: (one) => html`<code class="cut">${one.value === null ? "" : visibleLine(one.value)}</code>` },
    { title: "Replayed", cell: (one) => (one.replayed ? "yes" : "no") },
  ];
  const last = from + data.records.length;
  return html`<section class="card"><header><h2 class="wrap-anywhere">${visible(title) || "Records"}</h2><span class="small muted">${data.count ? `${count(from + 1)} to ${count(last)} of ${count(data.count)}` : "none here"}</span></header>
    <${PlainTable} label="Records of the group" columns=${columns} rows=${data.records} keyOf=${(one) => `${one.queue.partition}@${one.queue.offset}`} />
    <div class="row body">
      <button class="button small" type="button" disabled=${from === 0} onClick=${() => setFrom(Math.max(0, from - data.records.length || 100))}>Newer</button>
      <button class="button small" type="button" disabled=${last >= data.count && !data.cursor} onClick=${() => { if (last < data.count) setFrom(last); else { setBefore(data.cursor); setFrom(0); } }}>Older</button>
    </div>
    ${shown && html`<${LetterDialog} connector=${connector} place=${shown.queue} onClose=${() => setShown(null)} />`}
  </section>`;
}
