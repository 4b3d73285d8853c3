/**
 * Keeps the store fresh: by the worker's stream of events while the page is seen, by asking every five seconds
 * where no stream comes through. Read with `fetch`: an `EventSource` cannot send our header.
 */
import { OUR_HEADER, address, get } from "./api.js";
import { connection, isOutdated, lastEvent, me, overviewError, rows, takeOverview, takeRows } from "./store.js";

const HELLO_WITHIN = 5000;
const POLL_EVERY = 5000;
const STREAM_AGAIN = 30_000;
const SILENCE = 40_000;
const OUR_FILES = new URL(".", import.meta.url).pathname;

let stopped = new AbortController();
let lastId = "";

/** Begins, and begins again whenever the page is seen. A hidden page holds no connection. */
export function follow() {
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("pagehide", stop);
  if (!document.hidden) start();
}

function start() {
  stop();
  stopped = new AbortController();
  run(stopped.signal);
}

function stop() {
  stopped.abort();
}

/** @param {AbortSignal} signal */
async function run(signal) {
  let failures = 0;
  while (!signal.aborted) {
    if (!(await refreshed(signal))) {
      failures += 1;
      await sleep(Math.min(10_000, 500 * 2 ** failures), signal);
      continue;
    }
    failures = 0;
    const outcome = await listen(signal);
    if (signal.aborted) return;
    if (outcome === "nothing came") await poll(signal);
    else await sleep(500 + Math.random() * 500, signal);
  }
}

/** Who we are and all rows, anew. */
async function refreshed(signal) {
  try {
    const [who, overview] = await Promise.all([get("me", {}, { signal }), get("overview", {}, { signal })]);
    me.value = who;
    checkFiles(who);
    takeOverview(overview);
    if (overview.version !== undefined) lastId = String(overview.version);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    is("lost");
    if (!rows.value) overviewError.value = error;
    return false;
  }
}

/**
 * Reads the stream until it ends.
 * @param {AbortSignal} signal
 * @returns {Promise<"ended" | "nothing came">}
 */
async function listen(signal) {
  const ours = new AbortController();
  const giveUp = () => ours.abort();
  signal.addEventListener("abort", giveUp);
  let hasCome = false;
  let silence = setTimeout(giveUp, HELLO_WITHIN);
  try {
    const headers = { ...OUR_HEADER, Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) };
    const response = await fetch(address("events"), { headers, cache: "no-store", signal: ours.signal });
    if (!response.ok || !response.body) return "nothing came";
    for await (const event of events(response.body)) {
      clearTimeout(silence);
      silence = setTimeout(giveUp, SILENCE);
      hasCome = true;
      is("live");
      if (event) take(event);
    }
  } catch {
    // It was cut, or nothing came: both are told by what we return.
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", giveUp);
    ours.abort();
  }
  return hasCome ? "ended" : "nothing came";
}

/** Asks every few seconds, and tries the stream again after a while. */
async function poll(signal) {
  const until = Date.now() + STREAM_AGAIN;
  while (!signal.aborted && Date.now() < until) {
    if (!(await refreshed(signal))) return;
    is("polling");
    await sleep(POLL_EVERY, signal);
  }
}

/** @param {{id: string, event: string, data: any}} event */
function take({ id, event, data }) {
  if (id) lastId = id;
  if (event === "hello") checkFiles(data);
  else if (event === "overview") takeOverview(data);
  else if (event === "rows") takeRows(data);
  else lastEvent.value = { event, data };
}

/** @param {any} said an answer that names the files that the worker serves */
function checkFiles(said) {
  if (said?.assets && OUR_FILES.includes("/a/") && !OUR_FILES.includes(`/a/${said.assets}/`)) isOutdated.value = true;
}

function is(state) {
  if (connection.value.is !== state) connection.value = { is: state, since: Date.now() };
}

/**
 * The events of a stream; null for a comment, which only says that the worker is there.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) yield parsed(block);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(block) {
  const fields = { id: "", event: "message", data: "" };
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^([a-z]+): ?(.*)$/s.exec(line) ?? [];
    if (field === "data") fields.data += value;
    else if (field in fields) fields[field] = value;
  }
  if (!fields.data) return null;
  try {
    return { ...fields, data: JSON.parse(fields.data) };
  } catch {
    return null;
  }
}

/** @param {number} ms @param {AbortSignal} signal */
function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
  });
}
