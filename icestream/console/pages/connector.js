/** One connector: what it is, what it does now, and a tab for each thing to know about it. */
import { html, useEffect, useRef } from "../dom.js";
import { factsOf } from "../facts.js";
import { count, of, shortClass, span, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Actions } from "../parts/actions.js";
import { Icon } from "../parts/icons.js";
import { useKeys } from "../parts/keys.js";
import { MoreActions } from "../parts/more_actions.js";
import { Failure, Health, Loading, Note, Nothing, Time, Trace, headline } from "../parts/states.js";
import { TABS, ask, go, href, place } from "../routes.js";
import { can, lastEvent, me, rows } from "../store.js";
import { Batches } from "./batches.js";
import { Commits } from "./commits.js";
import { Config } from "./config.js";
import { ConnectorOverview } from "./connector_overview.js";
import { Events } from "./events.js";
import { Letters } from "./letters.js";
import { Offsets } from "./offsets.js";

const LOOK_EVERY = 3000;
const TITLES = { overview: "Overview", batches: "Batches", commits: "Commits", letters: "Dead letters", offsets: "Offsets", config: "Config", events: "Events" };
const PAGES = { overview: ConnectorOverview, batches: Batches, commits: Commits, letters: Letters, offsets: Offsets, config: Config, events: Events };
export const RANGES = { "15m": "15 min", "1h": "1 hour", "6h": "6 hours", "24h": "24 hours" };

export function Connector() {
  const { name, tab } = place.value;
  const { data, error, again } = useAnswer("connector", { connector: name }, { every: LOOK_EVERY });
  useEffect(() => {
    // A batch that ended, or a state that changed, is shown at once.
    if (lastEvent.value?.data?.connector === name) again();
  }, [lastEvent.value]);
  // Before it is known what this visitor may do, the page of the config says so.
  useKeys({ e: () => (!me.value || can("edit")) && go("connector", { name, tab: "config" }) });
  if (!data) return error ? html`<${Missing} name=${name} error=${error} again=${again} />` : html`<${Loading} what="the connector" />`;
  const facts = factsOf(data, rows.value?.get(name));
  const Page = PAGES[tab] ?? NoSuchTab;
  return html`
    <${Heading} name=${name} facts=${facts} />
    <${Trouble} facts=${facts} error=${error} />
    <div class="tabline"><${Tabs} name=${name} tab=${tab} rejected=${facts.books.rejected} />
      ${tab === "overview" && html`<${Range} since=${facts.since} />`}</div>
    <${Page} key=${tab} connector=${name} detail=${data} facts=${facts} again=${again} />`;
}

/** In a narrow window the tabs scroll: the one that is shown is brought into sight. */
function Tabs({ name, tab, rejected }) {
  const frame = useRef(null);
  useEffect(() => frame.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [tab]);
  return html`<nav class="tabs" aria-label="About this connector" ref=${frame}>
    ${TABS.map((one) => html`<a key=${one} href=${href("connector", { name, tab: one })} aria-current=${tab === one ? "page" : undefined}>${TITLES[one]}${one === "letters" && rejected > 0 && ` (${count(rejected)})`}</a>`)}</nav>`;
}

function Missing({ name, error, again }) {
  if (error.status !== 404) return html`<${Failure} error=${error} retry=${again} />`;
  return html`<${Nothing} title="There is no such connector"><p class="wrap-anywhere">No connector is named ${visibleLine(name)}. It may have been deleted.</p>
    <a class="button" href=${href("connectors")}>To the connectors</a><//>`;
}

function Heading({ name, facts }) {
  return html`
    <p class="crumbs"><a href=${href("connectors")}>Connectors</a> /</p>
    <div class="heading"><h1>${visibleLine(name)}</h1>
      <div class="row"><${Actions} name=${name} state=${facts.state} />
        ${can("edit") && html`<a class="button" href=${href("connector", { name, tab: "config" })}><${Icon} name="edit" />Edit</a>`}
        <${MoreActions} name=${name} state=${facts.state} /></div></div>
    <div class="subline"><${Health} health=${facts.health} />
      <span>${visibleLine(facts.state)}${facts.worker && ` on ${visibleLine(facts.worker)}`}</span>
      <span>${of(facts.tasks.length, "task")}</span>
      <span>${shortClass(facts.class)} ${visibleLine(facts.version)}</span>
      ${facts.topics.length + facts.tables.length > 0 && html`<span class="wrap-anywhere">${wayOf(facts)}</span>`}
      ${facts.state === "RUNNING" && facts.nextCommitIn !== null && html`<span>next commit in ${span(facts.nextCommitIn)}</span>`}
      ${facts.age > 10_000 && html`<span>as of ${span(facts.age)} ago</span>`}</div>`;
}

/** @param {{type: string, topics: string[], tables: string[]}} facts */
function wayOf({ type, topics, tables }) {
  const few = (list) => (list.length > 3 ? `${list.slice(0, 3).map(visibleLine).join(", ")} and ${list.length - 3} more` : list.map(visibleLine).join(", "));
  return (type === "source" ? [few(tables), few(topics)] : [few(topics), few(tables)]).filter(Boolean).join(" → ");
}

/** Why it does not do its work, before anything else. */
function Trouble({ facts, error }) {
  const tone = facts.state === "FAILED" ? "bad" : facts.health === "waiting" ? "wait" : "warn";
  const isTroubled = facts.reason || (facts.trace && facts.state === "FAILED");
  return html`<div class="stack trouble">
    ${error && html`<${Note} tone="warn" title="What you see is old"><p>${visible(error.message)}</p><//>`}
    ${isTroubled && html`<${Note} tone=${tone} title=${html`${facts.traceAt && html`<${Time} ms=${facts.traceAt} /> `}${visible(facts.reason ?? headline(facts.trace))}`}>
      ${facts.restart && html`<p>${visible(typeof facts.restart === "string" ? facts.restart : facts.restart.note)}</p>`}
      ${facts.trace && html`<${Trace} trace=${facts.trace} />`}<//>`}
    ${facts.waitsFor && html`<${Note} tone="idle"><p>${visible(facts.waitsFor)}</p><//>`}
  </div>`;
}

/** @param {{since: number | null}} props when the history of the connector begins on its worker */
function Range({ since }) {
  const asked = place.value.query.range ?? "1h";
  return html`${since && html`<span class="small muted push">history since <${Time} ms=${since} /></span>`}<label class="field ${since ? "" : "push"}">Range <select value=${asked} onChange=${(event) => ask({ range: event.target.value === "1h" ? undefined : event.target.value })}>
    ${Object.entries(RANGES).map(([key, words]) => html`<option value=${key} selected=${key === asked}>${words}</option>`)}</select></label>`;
}

function NoSuchTab() {
  return html`<${Nothing} title="There is no such page"><p>Choose one of the tabs above.</p><//>`;
}
