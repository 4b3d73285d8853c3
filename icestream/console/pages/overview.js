/** All connectors: counts that filter, the worst first, what is wrong in the row, actions on many. */
import { html, useEffect, useMemo, useState } from "../dom.js";
import { chosen, nextSort, sortOf, sorted, valuesOf } from "../filters.js";
import { count, of, rate, span, visibleLine } from "../format.js";
import { pending } from "../actions.js";
import { BulkBar } from "../parts/bulk.js";
import { HealthSign, Icon } from "../parts/icons.js";
import { useKeys } from "../parts/keys.js";
import { Spark } from "../parts/spark.js";
import { Ago, Failure, HEALTHS, Health, Loading, Nothing, inWords } from "../parts/states.js";
import { VirtualTable } from "../parts/table.js";
import { RowDetails } from "../parts/row_details.js";
import { ask, go, href, place } from "../routes.js";
import { can, overviewError, rows, summary, totals, trend } from "../store.js";

const ROW_HEIGHT = 54;
const OPEN_HEIGHT = 236;

export function Overview() {
  if (!rows.value) return overviewError.value ? html`<${Failure} error=${overviewError.value} />` : html`<${Loading} what="connectors" />`;
  if (rows.value.size === 0) return html`<h1 class="unseen">Connectors</h1><${NoConnectors} />`;
  return html`<h1 class="unseen">Connectors</h1><${Tiles} /><${Counts} /><${List} />`;
}

function NoConnectors() {
  return html`<${Nothing} title="No connectors yet">
    <p>A connector moves records between Kafka and somewhere else. Make one here, or with
      <code> icestream connector create </code> or <code>POST /connectors</code>.</p>
    ${can("edit") && html`<a class="button primary" href=${href("new")}><${Icon} name="plus" />New connector</a>`}<//>`;
}

/** The whole at a glance. */
function Tiles() {
  const all = [...rows.value.values()];
  const sum = (key) => all.reduce((total, row) => total + (row[key] ?? 0), 0);
  const oldest = Math.max(0, ...all.map((row) => row.fresh_ms ?? 0));
  const rejected = summary.value.rejected_hour;
  return html`<section class="tiles" aria-label="Sums over all connectors">
    <${Tile} title="Records/s" value=${rate(sum("rate"))} spark=${trend.value.rate} />
    <${Tile} title="Lag" unit="records" value=${count(sum("lag"))} spark=${trend.value.lag} />
    <${Tile} title="Oldest unread" value=${oldest ? span(oldest) : "none"} />
    ${rejected === null || rejected === undefined
      ? html`<${Tile} title="Rejected, in all" unit="records" value=${count(sum("rejected"))} />`
      : html`<${Tile} title="Rejected, last hour" unit="records" value=${count(rejected)} />`}
  </section>`;
}

function Tile({ title, value, unit, spark }) {
  return html`<div class="tile card"><span class="tile-title">${title}</span>
    <span class="tile-value">${value}${unit && html` <small>${unit}</small>`}</span>
    ${spark && html`<${Spark} values=${spark} />`}</div>`;
}

/** How many are in which health; each is a filter. */
function Counts() {
  const asked = place.value.query.health?.split(",") ?? [];
  const toggle = (health) => {
    const next = asked.includes(health) ? asked.filter((one) => one !== health) : [...asked, health];
    ask({ health: next.join(",") || undefined });
  };
  return html`<div class="chips counts" role="group" aria-label="Connectors by health">
    <button type="button" class="chip" aria-pressed=${asked.length === 0} onClick=${() => ask({ health: undefined })}><b>${count(rows.value.size)}</b> ${rows.value.size === 1 ? "connector" : "connectors"}</button>
    ${Object.entries(HEALTHS)
      .filter(([health]) => totals.value[health] || asked.includes(health))
      .map(
        ([health, { word, tone, means }]) => html`<button key=${health} type="button" class="chip tone-${tone}" title=${means} aria-pressed=${asked.includes(health)}
          onClick=${() => toggle(health)}><${HealthSign} health=${health} /><b>${count(totals.value[health] ?? 0)}</b> ${word}</button>`,
      )}
  </div>`;
}

function List() {
  const { query } = place.value;
  const sort = sortOf(query.sort);
  const all = rows.value;
  const found = useMemo(() => sorted(chosen(all.values(), query), sort), [all, JSON.stringify(query)]);
  const [selected, setSelected] = useState(() => new Set());
  const [opened, setOpened] = useState(() => new Set());
  const [current, setCurrent] = useState(/** @type {string | undefined} */ (undefined));
  const toggled = (set, name) => {
    const next = new Set(set);
    if (!next.delete(name)) next.add(name);
    return next;
  };
  const move = (step) => {
    const index = found.findIndex((row) => row.name === current);
    const next = index < 0 ? (step > 0 ? 0 : found.length - 1) : Math.min(found.length - 1, Math.max(0, index + step));
    if (found[next]) setCurrent(found[next].name);
  };
  const onCurrent = (act) => () => current !== undefined && all.has(current) && act(current);
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: onCurrent((name) => can("operate") && setSelected((before) => toggled(before, name))),
    o: onCurrent((name) => setOpened((before) => toggled(before, name))),
    Enter: onCurrent((name) => go("connector", { name })),
    e: onCurrent((name) => can("edit") && go("connector", { name, tab: "config" })),
  });
  const isAllSelected = found.length > 0 && found.every((row) => selected.has(row.name));
  const columns = useColumns({
    isAllSelected,
    onAll: () => setSelected(isAllSelected ? new Set() : new Set(found.map((row) => row.name))),
    selected,
    onSelect: (name) => setSelected((before) => toggled(before, name)),
    opened,
    onOpen: (name) => setOpened((before) => toggled(before, name)),
  });
  const names = [...selected].filter((name) => all.has(name));
  return html`
    <${FilterBar} found=${found.length} all=${all} query=${query} />
    ${found.length === 0
      ? html`<div class="card"><${Nothing} title="No connector matches" icon="search"><p>${of(all.size, "connector")}, and none with all of these filters.</p>
          <button class="button" type="button" onClick=${() => go("connectors")}>Clear the filters</button><//></div>`
      : html`<div class="card list"><${VirtualTable} label="Connectors" columns=${columns} rows=${found} keyOf=${(row) => row.name} rowHeight=${ROW_HEIGHT} openHeight=${OPEN_HEIGHT}
          opened=${opened} more=${(row) => html`<${RowDetails} row=${row} />`} classOf=${(row) => `is-${row.health}${selected.has(row.name) ? " is-selected" : ""}${row.age_ms > 10_000 ? " is-old" : ""}`}
          current=${current} sort=${sort} onSort=${(by) => ask({ sort: nextSort(sort, by) })} /></div>`}
    ${names.length > 0 && html`<${BulkBar} names=${names} onClear=${() => setSelected(new Set())} />`}`;
}

function useColumns({ isAllSelected, onAll, selected, onSelect, opened, onOpen }) {
  const select = {
    key: "select",
    sortable: false,
    class: "tick",
    width: "40px",
    title: html`<input type="checkbox" aria-label="Select all that are shown" checked=${isAllSelected} onChange=${onAll} />`,
    cell: (row) => html`<input type="checkbox" aria-label="Select ${visibleLine(row.name)}" checked=${selected.has(row.name)} onChange=${() => onSelect(row.name)} />`,
  };
  const width = useWidth();
  const isNarrow = width < 560;
  const all = [
    ...(can("operate") ? [select] : []),
    { key: "health", title: "Health", width: isNarrow ? "38px" : "116px", class: "health-cell", cell: (row) => html`<${Health} health=${row.health} />` },
    { key: "name", title: "Name", class: "name-cell", cell: (row) => html`<${NameCell} row=${row} isOpen=${opened.has(row.name)} onOpen=${() => onOpen(row.name)} />` },
    { key: "rate", title: "Records/s", class: "number", width: "96px", from: 640, cell: (row) => rate(row.rate) },
    { key: "lag", title: "Lag", class: "number", width: isNarrow ? "76px" : "92px", cell: (row) => count(row.lag) },
    { key: "fresh_ms", title: "Freshness", class: "number", width: "98px", from: 860, cell: (row) => (row.fresh_ms === 0 ? "now" : span(row.fresh_ms)) },
    { key: "last_commit_ms", title: "Last commit", class: "number", width: "112px", from: 1080, cell: (row) => html`<${Ago} ms=${row.last_commit_ms} />` },
    { key: "rows", title: "Rows", class: "number", width: "112px", from: 960, cell: (row) => count(row.rows) },
    { key: "rejected", title: "Rejected", class: "number", width: "88px", from: 1080, cell: (row) => (row.rejected ? html`<strong class="rejected">${count(row.rejected)}</strong>` : "0") },
    { key: "worker", title: "Worker", class: "worker-cell", width: "142px", from: 1180, cell: (row) => html`<${WorkerCell} row=${row} />` },
  ];
  return all.filter((column) => width >= (column.from ?? 0));
}

/** What does not fit into the window is left out of the table; an opened row has all of it. */
function useWidth() {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const look = () => setWidth(innerWidth);
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  }, []);
  return width;
}

function WorkerCell({ row }) {
  return html`<span class="name-lines" title=${visibleLine(row.worker)}><span class="second">${visibleLine(row.worker)}</span>
    <span class="second">${row.running} of ${of(row.tasks, "task")}</span></span>`;
}

function NameCell({ row, isOpen, onOpen }) {
  const asked = pending.value.get(row.name);
  const name = visibleLine(row.name);
  return html`<div class="name-frame">
    <button class="opener" type="button" aria-expanded=${isOpen} aria-label="More about ${name}" onClick=${onOpen}><${Icon} name="right" size=${14} /></button>
    <span class="name-lines"><a class="name" href=${href("connector", { name: row.name })} title=${name}>${name}</a>
      <span class="second" title=${row.reason ? visibleLine(row.reason) : undefined}>${asked ? html`<span class="asked">${asked}</span>` : secondLine(row)}</span></span>
  </div>`;
}

function secondLine(row) {
  if (row.age_ms > 10_000) return `as of ${span(row.age_ms)} ago`;
  if (row.reason) return html`<span class="reason">${inWords(row.reason)}</span>`;
  const from = (row.topics ?? []).map(visibleLine).join(", ");
  const to = (row.tables ?? []).map(visibleLine).join(", ");
  const way = row.type === "source" ? [to, from] : [from, to];
  return [visibleLine(row.class).replace(/Connector$/, ""), way.filter(Boolean).join(" → ")].filter(Boolean).join(" · ");
}

function FilterBar({ found, all, query }) {
  const list = all.values().toArray?.() ?? [...all.values()];
  const hasFilter = Object.keys(query).some((key) => key !== "sort" && query[key]);
  return html`<div class="filters" role="group" aria-label="Filters">
    <${Choice} label="Type" key_="type" values=${valuesOf(list, "type")} query=${query} />
    <${Choice} label="Class" key_="class" values=${valuesOf(list, "class")} query=${query} />
    <${Choice} label="Worker" key_="worker" values=${valuesOf(list, "worker")} query=${query} />
    <${Choice} label="Topic" key_="topic" values=${valuesOf(list, "topics").slice(0, 500)} query=${query} />
    ${hasFilter && html`<button class="button plain small" type="button" onClick=${() => ask(Object.fromEntries(Object.keys(query).filter((key) => key !== "sort").map((key) => [key, undefined])))}><${Icon} name="close" />Clear filters</button>`}
    <span class="push small muted" role="status">${found === all.size ? of(found, "connector") : `${count(found)} of ${count(all.size)}`}${query.sort ? "" : ", worst first"}</span>
  </div>`;
}

function Choice({ label, key_, values, query }) {
  const asked = query[key_] ?? "";
  if (values.length < 2 && !asked) return null;
  return html`<label class="field">${label}
    <select value=${asked} onChange=${(event) => ask({ [key_]: event.target.value || undefined })}><option value="">any</option>
      ${[...new Set([...values, ...(asked ? [asked] : [])])].map((value) => html`<option value=${value} selected=${value === asked}>${visibleLine(value).slice(0, 80)}</option>`)}</select></label>`;
}
