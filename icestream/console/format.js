/** How numbers, times and other people's texts are written. Nothing here touches the page. */

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const twoDigits = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const DASH = "–";

// Control characters, and those that turn the direction of a text around or take no room: a name could pose as another.
const DECEIVING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/**
 * Somebody else's text with what cannot be seen written as an escape. Line ends and tabs stay.
 * @param {unknown} text
 * @returns {string}
 */
export function visible(text) {
  if (text === null || text === undefined) return "";
  return String(text).toWellFormed().replace(DECEIVING, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

/**
 * The same in one line.
 * @param {unknown} text
 * @returns {string}
 */
export function visibleLine(text) {
  return visible(text).replace(/[\n\t]/g, (sign) => (sign === "\n" ? "\\n" : "\\t"));
}

/**
 * A whole number. Those beyond 2^53 come as strings and keep all their digits.
 * @param {number | string | null | undefined} value
 * @returns {string}
 */
export function count(value) {
  if (value === null || value === undefined || value === "") return DASH;
  if (typeof value === "string") return /^-?\d+$/.test(value) ? whole.format(BigInt(value)) : visibleLine(value);
  return Number.isFinite(value) ? whole.format(value) : DASH;
}

/** @param {number | null | undefined} value per second */
export function rate(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return DASH;
  if (value === 0) return "0";
  return value < 10 ? twoDigits.format(value) : whole.format(value);
}

/** @param {number | null | undefined} value a number that must be short, such as on an axis */
export function short(value) {
  return value === null || value === undefined || !Number.isFinite(value) ? DASH : compact.format(value);
}

/** @param {number | null | undefined} value */
export function bytes(value) {
  if (value === null || value === undefined) return DASH;
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? whole.format(value) : oneDigit.format(value)} ${units[unit]}`;
}

/**
 * How long: `320 ms`, `1.9 s`, `14 min`, `3 h 5 min`, `2 d 4 h`.
 * @param {number | null | undefined} ms
 */
export function span(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return DASH;
  if (ms <= 0) return "0 s";
  if (ms < 1000) return `${whole.format(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${oneDigit.format(seconds)} s`;
  if (seconds < 90) return `${whole.format(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${Math.floor(hours / 24)} d`;
}

/**
 * A moment, in UTC with a Z or in the browser's time zone; with the day if it was another one.
 * @param {number} ms
 * @param {{utc: boolean, now: number, millis?: boolean}} how
 */
export function moment(ms, { utc, now, millis = false }) {
  const [day, clock] = dayAndClock(ms, utc, millis);
  return day === dayAndClock(now, utc, false)[0] ? clock : `${day} ${clock}`;
}

/**
 * A moment with its day, for tooltips.
 * @param {number} ms
 * @param {boolean} utc
 */
export function wholeMoment(ms, utc) {
  return `${dayAndClock(ms, utc, true).join(" ")}${utc ? " (UTC)" : " (local time)"}`;
}

/** @returns {[string, string]} */
function dayAndClock(ms, utc, millis) {
  const at = new Date(utc ? ms : ms - new Date(ms).getTimezoneOffset() * 60_000);
  if (Number.isNaN(at.getTime())) return ["", DASH];
  const text = at.toISOString();
  return [text.slice(0, 10), text.slice(11, millis ? 23 : 19) + (utc ? "Z" : "")];
}

/**
 * "1 connector", "2 connectors".
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function of(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** @param {string} name of a Java class, without its package */
export function shortClass(name) {
  return visibleLine(name).split(".").pop() ?? "";
}
