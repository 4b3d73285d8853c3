/** The frame of the console: header, navigation, messages, and the page that the address names. */
import { html, render, useEffect, useRef, useState } from "./dom.js";
import { count, of, visibleLine } from "./format.js";
import { Connector } from "./pages/connector.js";
import { Create } from "./pages/create.js";
import { Letters } from "./pages/letters.js";
import { Loggers } from "./pages/loggers.js";
import { Overview } from "./pages/overview.js";
import { Plugins } from "./pages/plugins.js";
import { Workers } from "./pages/workers.js";
import { Icon, Mark } from "./parts/icons.js";
import { KeysDialog, useKeys } from "./parts/keys.js";
import { Nothing, Time } from "./parts/states.js";
import { Toasts } from "./parts/toast.js";
import { ask, go, href, place } from "./routes.js";
import { can, connection, isOutdated, me, now, prefs, rows, totals } from "./store.js";
import { follow } from "./stream.js";

const PAGES = { connectors: Overview, connector: Connector, letters: Letters, workers: Workers, plugins: Plugins, loggers: Loggers, new: Create };

function App() {
  const [hasHelp, setHelp] = useState(false);
  useKeys({
    "/": () => document.getElementById("search")?.focus(),
    "?": () => setHelp(true),
    "g o": () => go("connectors"),
    "g w": () => go("workers"),
  });
  useTheme();
  useTitle();
  const { page, name } = place.value;
  const Page = PAGES[page] ?? Unknown;
  return html`
    <a class="skip button" href="#main" onClick=${skipped}>To the content</a>
    <${Header} onHelp=${() => setHelp(true)} />
    <${Ribbons} />
    <main id="main" tabindex="-1"><${Page} key=${`${page} ${name ?? ""}`} /></main>
    <${Toasts} />
    ${hasHelp && html`<${KeysDialog} onClose=${() => setHelp(false)} />`}`;
}

function skipped(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Header({ onHelp }) {
  const who = me.value;
  return html`<header class="top">
    <div class="top-line">
      <a class="brand" href=${href("connectors")}><${Mark} />Icestream</a>
      <span class="where">${whereOf(who)}</span>
      <${Search} />
      <${Live} />
      <${ThemeButton} />
      <button class="button plain icon" type="button" aria-label="Keys and help" title="Keys and help" onClick=${onHelp}><${Icon} name="help" /></button>
      ${who && html`<span class="who small muted nowrap">${who.user ? `${visibleLine(who.user)} · ` : ""}${who.level}</span>`}
    </div>
    <${Navigation} />
  </header>`;
}

function whereOf(who) {
  if (!who) return "";
  const workers = who.workers ?? 1;
  return [who.group ?? who.mode, workers > 1 ? of(workers, "worker") : visibleLine(who.worker), who.cluster_id && `Kafka ${visibleLine(who.cluster_id)}`]
    .filter(Boolean)
    .join(" · ");
}

const NAVIGATION = [
  ["connectors", "Connectors"],
  ["letters", "Dead letters"],
  ["workers", "Workers"],
  ["plugins", "Plugins"],
  ["loggers", "Loggers"],
];

function Navigation() {
  const here = place.value.page === "connector" ? "connectors" : place.value.page;
  const off = me.value?.off ?? [];
  return html`<nav class="nav" aria-label="Pages">
    ${NAVIGATION.filter(([page]) => !off.includes(page)).map(
      ([page, title]) => html`<a class="tab" href=${href(page)} aria-current=${here === page ? "page" : undefined}>${title}</a>`,
    )}
    ${can("edit") && html`<span class="push"><a class="button primary small" href=${href("new")}><${Icon} name="plus" />New connector</a></span>`}
  </nav>`;
}

/** Finds connectors from every page. */
function Search() {
  const box = useRef(null);
  const { page, query } = place.value;
  const text = page === "connectors" ? (query.q ?? "") : "";
  const typed = (event) => {
    const q = event.target.value || undefined;
    if (page === "connectors") ask({ q }, { replace: true });
    else if (q) go("connectors", { query: { q } });
  };
  const left = (event) => {
    if (event.key === "Escape") {
      ask({ q: undefined }, { replace: true });
      box.current.blur();
    } else if (event.key === "Enter") {
      box.current.blur();
    }
  };
  return html`<div class="top-search" role="search"><input id="search" ref=${box} type="search" aria-label="Search connectors" placeholder="Search names, topics, tables, classes"
    autocomplete="off" spellcheck=${false} value=${text} onInput=${typed} onKeyDown=${left} />${prefs.keys.value && !text && html`<kbd aria-hidden="true">/</kbd>`}</div>`;
}

const LIVE_WORDS = { connecting: "connecting", live: "live", polling: "every 5 s", lost: "not connected" };

function Live() {
  const { is } = connection.value;
  const title = is === "polling" ? "The stream of events does not come through; the page asks every five seconds." : undefined;
  return html`<span class="live" data-is=${is} title=${title}><span class="dot"></span><span role="status">${LIVE_WORDS[is]}</span>${is !== "lost" && html` <${Time} ms=${now.value} />`}</span>`;
}

const THEMES = ["system", "light", "dark"];
const THEME_ICONS = { system: "system", light: "sun", dark: "moon" };

function ThemeButton() {
  const theme = prefs.theme.value;
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  return html`<button class="button plain icon" type="button" aria-label="Colours: ${theme}; change to ${next}" title="Colours: ${theme}"
    onClick=${() => (prefs.theme.value = next)}><${Icon} name=${THEME_ICONS[theme]} /></button>`;
}

function useTheme() {
  const theme = prefs.theme.value;
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
}

function useTitle() {
  const { page, name } = place.value;
  const failed = totals.value.failed ?? 0;
  const title = page === "connector" ? visibleLine(name) : (NAVIGATION.find(([known]) => known === page)?.[1] ?? "New connector");
  useEffect(() => {
    document.title = `${failed ? `(${count(failed)} failed) ` : ""}${title} · Icestream`;
  }, [title, failed]);
}

/** What is true of the whole page and worth a line. */
function Ribbons() {
  const { is, since } = connection.value;
  const health = me.value?.health;
  return html`
    ${is === "lost" && rows.value && html`<div class="ribbon-frame" data-tone="bad"><div class="ribbon" role="alert">
      Not connected: the worker does not answer. What you see is as of <${Time} ms=${since} />; the page tries again by itself.</div></div>`}
    ${health && health.status !== "healthy" && html`<div class="ribbon-frame"><div class="ribbon">The worker is ${health.status}: ${visibleLine(health.message)}</div></div>`}
    ${isOutdated.value && html`<div class="ribbon-frame"><div class="ribbon" role="status">The worker has a new version of this page.
      <button class="button small" type="button" onClick=${() => location.reload()}>Reload</button></div></div>`}`;
}

function Unknown() {
  return html`<h1 class="unseen">There is no such page</h1><${Nothing} title="There is no such page"><p>The address may come from another version.</p>
    <a class="button" href=${href("connectors")}>To the connectors</a><//>`;
}

render(html`<${App} />`, document.getElementById("app"));
follow();
