/** What the page knows: who looks, the rows of the overview, how we are connected, and what the user prefers. */
import { computed, effect, signal } from "./dom.js";

/**
 * @typedef {Record<string, any> & {name: string, health: string, state: string}} Row one connector of the overview
 */

/** Who looks and at what: the answer to `me`, or null before it came. */
export const me = signal(null);

const LEVELS = ["off", "view", "operate", "edit"];

/**
 * Whether the worker would let us. Hiding a button is a courtesy: the worker refuses by itself.
 * @param {"view" | "operate" | "edit"} level
 */
export function can(level) {
  return LEVELS.indexOf(me.value?.level ?? "view") >= LEVELS.indexOf(level);
}

/** @type {{value: Map<string, Row> | null}} null until the first answer */
export const rows = signal(null);
/** The rest of the overview's last answer. */
export const summary = signal({ version: 0, at: 0, rejected_hour: null });
/** Why there is no overview, if there is none. */
export const overviewError = signal(null);

/** @type {{value: {is: "connecting" | "live" | "polling" | "lost", since: number}}} */
export const connection = signal({ is: "connecting", since: Date.now() });
/** The worker serves other files than those that this page was made from. */
export const isOutdated = signal(false);

/** Ticks every second while somebody looks; ages in words follow it. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
document.addEventListener("visibilitychange", () => {
  now.value = Date.now();
});

/** The last events of the stream about one connector: `{connector, event, data}`. */
export const lastEvent = signal(null);

const TREND = 90;
/** Sums over all connectors, a point each time that rows came: for the small lines on top. */
export const trend = signal({ rate: /** @type {number[]} */ ([]), lag: /** @type {number[]} */ ([]) });

/** @param {any} answer of `overview` */
export function takeOverview(answer) {
  const found = new Map();
  for (const row of answer.rows) {
    const made = asRow(answer.columns, row);
    found.set(made.name, made);
  }
  columns = answer.columns;
  rows.value = found;
  overviewError.value = null;
  const { rows: _, columns: __, ...rest } = answer;
  summary.value = { ...summary.value, ...rest };
  addToTrend(found);
}

/** @param {any} change `{version, rows, gone}` of the stream */
export function takeRows(change) {
  if (!rows.value || !columns) return;
  const found = new Map(rows.value);
  for (const row of change.rows ?? []) {
    const made = asRow(change.columns ?? columns, row);
    found.set(made.name, made);
  }
  for (const name of change.gone ?? []) found.delete(name);
  rows.value = found;
  const { rows: _, gone: __, columns: ___, ...rest } = change;
  summary.value = { ...summary.value, ...rest, at: change.at ?? Date.now() };
  addToTrend(found);
}

let columns = /** @type {string[] | null} */ (null);

function asRow(names, values) {
  const row = /** @type {Row} */ ({});
  for (let i = 0; i < names.length; i += 1) row[names[i]] = values[i];
  return row;
}

function addToTrend(found) {
  let rate = 0;
  let lag = 0;
  for (const row of found.values()) {
    rate += row.rate ?? 0;
    lag += row.lag ?? 0;
  }
  const { rate: rates, lag: lags } = trend.value;
  trend.value = { rate: [...rates, rate].slice(-TREND), lag: [...lags, lag].slice(-TREND) };
}

/** How many connectors are in which health. */
export const totals = computed(() => {
  const found = /** @type {Record<string, number>} */ ({});
  for (const row of rows.value?.values() ?? []) found[row.health] = (found[row.health] ?? 0) + 1;
  return found;
});

/** What the user has chosen; kept by the browser. */
export const prefs = {
  theme: kept("theme", "system"),
  utc: kept("utc", true),
  keys: kept("keys", true),
};

function kept(name, otherwise) {
  const chosen = signal(otherwise);
  try {
    const stored = localStorage.getItem(`icestream.${name}`);
    if (stored !== null && typeof JSON.parse(stored) === typeof otherwise) chosen.value = JSON.parse(stored);
    effect(() => localStorage.setItem(`icestream.${name}`, JSON.stringify(chosen.value)));
  } catch {
    // A browser that keeps nothing: the choice holds for this page.
  }
  return chosen;
}
