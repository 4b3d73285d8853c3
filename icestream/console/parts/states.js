/** How states look, and what a page says while it has nothing else to show. */
import { html } from "../dom.js";
import { moment, span, visible, visibleLine, wholeMoment } from "../format.js";
import { now, prefs } from "../store.js";
import { HealthSign, Icon } from "./icons.js";

/**
 * Every health, worst first, as the worker orders them too.
 * @type {Record<string, {word: string, tone: "bad" | "warn" | "wait" | "good" | "idle", means: string}>}
 */
export const HEALTHS = {
  failed: { word: "failed", tone: "bad", means: "It has given up. Its reason is in the row." },
  unassigned: { word: "unassigned", tone: "bad", means: "No worker runs it." },
  waiting: { word: "waiting", tone: "wait", means: "It runs, and tries again what is away." },
  late: { word: "late", tone: "warn", means: "Records wait, and nothing was committed for three intervals." },
  behind: { word: "behind", tone: "warn", means: "Its lag has grown for five minutes." },
  rejecting: { word: "rejecting", tone: "warn", means: "Records went to its dead letters in the last five minutes." },
  paused: { word: "paused", tone: "idle", means: "Somebody has paused it." },
  stopped: { word: "stopped", tone: "idle", means: "Somebody has stopped it." },
  ok: { word: "ok", tone: "good", means: "It does its work." },
};
const WORST_FIRST = Object.keys(HEALTHS);

/** @param {string} health */
export function rankOf(health) {
  const rank = WORST_FIRST.indexOf(health);
  return rank < 0 ? 1 : rank;
}

/** @param {{health: string}} props */
export function Health({ health }) {
  const known = HEALTHS[health];
  return html`<span class="state tone-${known?.tone ?? "idle"}" title=${known?.means}><${HealthSign} health=${health} />${known?.word ?? visibleLine(health)}</span>`;
}

const STATE_TONES = { RUNNING: "good", FAILED: "bad", UNASSIGNED: "bad", RESTARTING: "wait", PAUSED: "idle", STOPPED: "idle" };
const STATE_SIGNS = { RUNNING: "ok", FAILED: "failed", UNASSIGNED: "unassigned", RESTARTING: "waiting", PAUSED: "paused", STOPPED: "stopped" };

/** A state in Kafka Connect's word. @param {{state: string}} props */
export function State({ state }) {
  return html`<span class="state tone-${STATE_TONES[state] ?? "idle"}"><${HealthSign} health=${STATE_SIGNS[state] ?? "unassigned"} />${visibleLine(state)}</span>`;
}

/** A moment; the tooltip has it in the other time zone. @param {{ms: number | null | undefined, millis?: boolean}} props */
export function Time({ ms, millis = false }) {
  if (ms === null || ms === undefined) return "–";
  const utc = prefs.utc.value;
  return html`<time datetime=${new Date(ms).toISOString()} title=${wholeMoment(ms, !utc)} class="nowrap">${moment(ms, { utc, now: Date.now(), millis })}</time>`;
}

/** How long ago; the tooltip has the moment. @param {{ms: number | null | undefined}} props */
export function Ago({ ms }) {
  if (ms === null || ms === undefined) return "–";
  const age = now.value - ms;
  const text = age < 1500 ? "just now" : age < 60_000 ? `${Math.round(age / 1000)} s ago` : `${span(age)} ago`;
  return html`<time datetime=${new Date(ms).toISOString()} title=${wholeMoment(ms, prefs.utc.value)} class="nowrap">${text}</time>`;
}

/** @param {{what?: string}} props */
export function Loading({ what = "" }) {
  return html`<div class="nothing" role="status"><span class="spin"></span><p>Loading ${what}…</p></div>`;
}

/**
 * Nothing to show: why, and what next.
 * @param {{title: string, icon?: string, children?: any}} props
 */
export function Nothing({ title, icon = "empty", children }) {
  return html`<div class="nothing"><${Icon} name=${icon} /><h2>${title}</h2>${children}</div>`;
}

const BY_STATUS = {
  0: ["The worker does not answer", "It may be restarting, or the network is in the way. This page tries again by itself."],
  401: ["Not logged in", "Load the page again; the browser asks for your name and password."],
  403: ["Not allowed", ""],
  404: ["Not found", ""],
  409: ["The workers are sharing out their work", "This takes some seconds; try again."],
  500: ["The worker could not do this", "If the message names Kafka, the worker may be cut off from it."],
  503: ["The worker is starting", "It will answer in a moment."],
};

/** An error in words. @param {{error: any, retry?: () => void}} props */
export function Failure({ error, retry }) {
  const [title, next] = BY_STATUS[error?.status] ?? ["This did not work", ""];
  return html`<div class="nothing" role="alert"><${Icon} name="warning" /><h2>${title}</h2>
    <p>${visible(error?.message ?? error)}</p>${next && html`<p>${next}</p>`}
    ${retry && html`<button class="button" type="button" onClick=${retry}>Try again</button>`}</div>`;
}

/**
 * A sentence with a coloured edge.
 * @param {{tone?: "bad" | "warn" | "wait" | "good" | "idle", title?: any, children?: any}} props
 */
export function Note({ tone = "idle", title, children }) {
  return html`<div class="note tone-${tone}">${title && html`<strong>${title}</strong>`}${children}</div>`;
}

/** Why something failed: the last line as headline, the whole folded. @param {{trace: string, open?: boolean}} props */
export function Trace({ trace, open = false }) {
  return html`<details open=${open}><summary>Trace</summary><pre class="trace" tabindex="0">${visible(trace)}</pre></details>`;
}

/** The line of a trace that says why. @param {string | null | undefined} trace */
export function headline(trace) {
  const lines = visible(trace).trim().split("\n").filter((line) => line.trim());
  return lines.find((line) => !/^\s|^Traceback/.test(line)) ?? lines[0] ?? "";
}

/** A reason in one line, without the class of the exception that brought it. @param {string} reason */
export function inWords(reason) {
  return visibleLine(reason).replace(/^(?:[A-Za-z_]+\.)*[A-Z]\w*: (?=\S)/, "");
}
