/** What one can ask of a connector, followed from the request to the state that it leads to. */
import { ApiError, get, send } from "./api.js";
import { signal } from "./dom.js";
import { of, visibleLine } from "./format.js";
import { say } from "./parts/toast.js";
import { rows } from "./store.js";

/** @type {Record<string, {method: string, asked: string, done: string, state: string, icon: string, title: string}>} */
export const ACTIONS = {
  restart: { method: "POST", asked: "restart asked", done: "restarted", state: "RUNNING", icon: "restart", title: "Restart" },
  pause: { method: "PUT", asked: "pause asked", done: "paused", state: "PAUSED", icon: "pause", title: "Pause" },
  resume: { method: "PUT", asked: "resume asked", done: "resumed", state: "RUNNING", icon: "play", title: "Resume" },
  stop: { method: "PUT", asked: "stop asked", done: "stopped", state: "STOPPED", icon: "stop", title: "Stop" },
};

/** What was asked of a connector and is not seen yet: name → words. */
export const pending = signal(/** @type {Map<string, string>} */ (new Map()));

const LOOK_EVERY = 700;
const PATIENCE = 60_000;
const REBALANCE_TRIES = 8;

/**
 * Ask, wait until the state is there, and say how it went.
 * @param {string} name
 * @param {keyof ACTIONS} verb
 */
export async function act(name, verb) {
  const outcome = await followed(name, verb);
  say(outcome.text, outcome.isGood ? "good" : "bad");
  return outcome;
}

/**
 * The same for many, some at a time; each result in the order of the names.
 * @param {string[]} names
 * @param {keyof ACTIONS} verb
 * @param {(done: number) => void} [onProgress]
 * @returns {Promise<{name: string, isGood: boolean, text: string}[]>}
 */
export async function actOnAll(names, verb, onProgress = () => {}) {
  const outcomes = new Array(names.length);
  let next = 0;
  let done = 0;
  const work = async () => {
    while (next < names.length) {
      const index = next++;
      outcomes[index] = await followed(names[index], verb);
      onProgress(++done);
    }
  };
  await Promise.all(Array.from({ length: Math.min(6, names.length) }, work));
  const refused = outcomes.filter((outcome) => !outcome.isGood).length;
  const words = `${of(names.length - refused, "connector")} ${ACTIONS[verb].done}`;
  say(refused ? `${words}, ${refused} not` : words, refused ? "bad" : "good");
  return outcomes;
}

async function followed(name, verb) {
  const action = ACTIONS[verb];
  const shown = visibleLine(name);
  note(name, `${action.asked}…`);
  try {
    await asked(name, verb, action.method);
    const { state, reason } = await seen(name, action.state);
    if (state === action.state) return { name, isGood: true, text: `${shown} is ${state}` };
    return { name, isGood: false, text: `${shown} is ${state}${reason ? `: ${reason}` : ""}` };
  } catch (error) {
    return { name, isGood: false, text: `${shown}: ${visibleLine(error.message)}` };
  } finally {
    note(name, null);
  }
}

/** A worker that shares out its work answers 409 for some seconds. */
async function asked(name, verb, method) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await send(method, verb, { query: { connector: name, ...(verb === "restart" && { includeTasks: true }) } });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409 || tries >= REBALANCE_TRIES) throw error;
      note(name, "the workers share out their work; asked again…");
      await sleep(1000);
    }
  }
}

/** The state that it came to; `expected` unless it failed or patience ended. */
async function seen(name, expected) {
  const until = Date.now() + PATIENCE;
  let looks = 0;
  for (;;) {
    await sleep(LOOK_EVERY);
    const { state, reason } = await stateOf(name);
    looks += 1;
    if (state === expected) return { state, reason };
    // Right after a restart, FAILED may still be the state of before.
    if (state === "FAILED" && looks > 3) return { state, reason };
    if (Date.now() > until) return { state, reason: "not yet; the page goes on showing its state" };
    note(name, `${ACTIONS_BY_STATE[expected] ?? "asked"} → ${state}…`);
  }
}

const ACTIONS_BY_STATE = { RUNNING: "start asked", PAUSED: "pause asked", STOPPED: "stop asked" };

async function stateOf(name) {
  const found = await get("connector", { connector: name });
  const state = found.status?.connector?.state ?? found.state ?? rows.value?.get(name)?.state;
  return { state, reason: visibleLine(found.reason ?? "") };
}

function note(name, words) {
  const changed = new Map(pending.value);
  if (words === null) changed.delete(name);
  else changed.set(name, words);
  pending.value = changed;
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
