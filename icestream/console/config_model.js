/**
 * A config as somebody edits it: what is stored, and changes to it. A flat map of strings in three forms, which
 * are one: rows of a form, JSON, and `.properties`. Nothing here touches the page.
 *
 * @typedef {Record<string, string>} Config
 * @typedef {Record<string, string | null>} Changes new values of keys; null removes one
 */

export const MASK = "[hidden]";

/** @param {Config} base @param {Changes} changes @returns {Config} */
export function merged(base, changes) {
  // Without a prototype: a key may be called __proto__.
  const found = /** @type {Config} */ (Object.assign(Object.create(null), base));
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) delete found[key];
    else found[key] = value;
  }
  return found;
}

/**
 * The changes after one more; what is as it was is no change.
 * @param {Config} base @param {Changes} changes @param {string} key @param {string | null} value
 * @returns {Changes}
 */
export function changed(base, changes, key, value) {
  const { [key]: _, ...others } = changes;
  const isAsBefore = value === null ? !Object.hasOwn(base, key) : Object.hasOwn(base, key) && base[key] === value;
  return isAsBefore ? others : { ...others, [key]: value };
}

/**
 * What leads from one config to another. A mask stands for what is stored, so it changes nothing.
 * @param {Config} base @param {Config} wanted
 * @returns {Changes}
 */
export function changesTo(base, wanted) {
  let changes = /** @type {Changes} */ ({});
  for (const key of new Set([...Object.keys(base), ...Object.keys(wanted)])) {
    changes = changed(base, changes, key, Object.hasOwn(wanted, key) ? wanted[key] : null);
  }
  return changes;
}

/**
 * The keys that two editors have changed, each with what was there at first, what is stored now, and ours.
 * @param {Config} began @param {Config} now @param {Changes} ours
 * @returns {{key: string, began?: string, now?: string, ours?: string | null, isBoth: boolean}[]}
 */
export function threeWay(began, now, ours) {
  const theirs = changesTo(began, now);
  return [...new Set([...Object.keys(theirs), ...Object.keys(ours)])].sort().map((key) => ({
    key,
    began: began[key],
    now: now[key],
    ours: Object.hasOwn(ours, key) ? ours[key] : undefined,
    isBoth: Object.hasOwn(theirs, key) && Object.hasOwn(ours, key) && (now[key] ?? null) !== ours[key],
  }));
}

/** @param {Config} config @param {"json" | "properties"} kind */
export function textOf(config, kind) {
  const keys = Object.keys(config);
  if (kind === "json") return JSON.stringify(Object.fromEntries(keys.map((key) => [key, config[key]])), null, 2);
  return keys.map((key) => `${escaped(key, true)}=${escaped(config[key], false)}\n`).join("");
}

/**
 * A config from a text of somebody; also a connector as REST takes it, with name and config.
 * @param {string} text @param {"json" | "properties"} [kind] guessed if not given
 * @returns {{config: Config, name?: string}} throws an Error that says what is wrong
 */
export function configFrom(text, kind = /^\s*\{/.test(text) ? "json" : "properties") {
  if (kind === "properties") {
    const config = fromProperties(text);
    return { config, name: config.name };
  }
  const found = fromJson(text);
  const inner = found.config;
  if (inner !== null && typeof inner === "object" && !Array.isArray(inner)) {
    return { config: strings(inner), name: typeof found.name === "string" ? found.name : undefined };
  }
  return { config: strings(found), name: typeof found.name === "string" ? found.name : undefined };
}

function fromJson(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}`);
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error("This is not a JSON object: write { \"key\": \"value\" }");
  return found;
}

/** @returns {Config} */
function strings(found) {
  const config = /** @type {Config} */ (Object.create(null));
  for (const [key, value] of Object.entries(found)) {
    if (value !== null && typeof value === "object") throw new Error(`The value of '${key}' is ${Array.isArray(value) ? "a list" : "an object"}: write a text, a number, true or false`);
    if (value !== null) config[key] = String(value);
  }
  return config;
}

// -- Java's .properties --

const SIGNS = { t: "\t", n: "\n", r: "\r", f: "\f" };

/** @returns {Config} */
function fromProperties(text) {
  const config = /** @type {Config} */ (Object.create(null));
  for (const line of logicalLines(text)) {
    let at = 0;
    while (at < line.length && !/[=:\s]/.test(line[at])) at += line[at] === "\\" ? 2 : 1;
    const rest = line.slice(at).replace(/^\s*[=:]?\s*/, "");
    config[unescaped(line.slice(0, at))] = unescaped(rest);
  }
  return config;
}

function logicalLines(text) {
  const lines = [];
  let open = "";
  for (const line of text.split(/\r\n|\r|\n/)) {
    const trimmed = line.replace(/^[ \t\f]+/, "");
    if (!open && (trimmed === "" || /^[#!]/.test(trimmed))) continue;
    const backslashes = /\\*$/.exec(trimmed)[0].length;
    if (backslashes % 2) {
      open += trimmed.slice(0, -1);
    } else {
      lines.push(open + trimmed);
      open = "";
    }
  }
  return open ? [...lines, open] : lines;
}

function unescaped(text) {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|([^]))/g, (_, code, sign) => (code ? String.fromCharCode(parseInt(code, 16)) : (SIGNS[sign] ?? sign)));
}

function escaped(text, isKey) {
  let found = text
    .replace(/\\/g, "\\\\")
    .replace(/\n/g, "\\n")
    .replace(/\r/g, "\\r")
    .replace(/\t/g, "\\t")
    .replace(/\f/g, "\\f")
    .replace(/[^\x20-\x7e]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  found = isKey ? found.replace(/[ :=#!]/g, "\\$&") : found.replace(/^ /, "\\ ");
  return isKey ? found : found.replace(/^[#!]/, "\\$&");
}

/** How alike a file name says it is. @param {string} name @returns {"json" | "properties" | undefined} */
export function kindOfFile(name) {
  if (/\.json$/i.test(name)) return "json";
  return /\.properties$/i.test(name) ? "properties" : undefined;
}
