/** Which connectors the address asks for, and in which order. No page, no network: filters are words, not code. */
import { rankOf } from "./parts/states.js";

/**
 * @param {Iterable<any>} rows
 * @param {Record<string, string>} query of the address
 */
export function chosen(rows, query) {
  const healths = query.health ? query.health.split(",") : null;
  const words = (query.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const row of rows) {
    if (healths && !healths.includes(row.health)) continue;
    if (query.type && row.type !== query.type) continue;
    if (query.class && row.class !== query.class) continue;
    if (query.worker && row.worker !== query.worker) continue;
    if (query.topic && !(row.topics ?? []).includes(query.topic)) continue;
    if (words.length && !words.every((word) => textOf(row).includes(word))) continue;
    found.push(row);
  }
  return found;
}

const texts = new WeakMap();

/** All that the search box looks at. */
function textOf(row) {
  let text = texts.get(row);
  if (text === undefined) {
    text = [row.name, row.class, ...(row.topics ?? []), ...(row.tables ?? [])].join("\n").toLowerCase();
    texts.set(row, text);
  }
  return text;
}

export const DEFAULT_SORT = "worst";
const DESCENDING_FIRST = ["rate", "lag", "fresh_ms", "rows", "rejected"];

/** @param {string | undefined} asked such as `lag` or `-lag` */
export function sortOf(asked) {
  if (!asked || asked === DEFAULT_SORT) return { by: "health", isDescending: false };
  const by = asked.replace(/^-/, "");
  return { by, isDescending: asked.startsWith("-") };
}

/** What a click on a head asks for next. @param {{by: string, isDescending: boolean}} sort @param {string} by */
export function nextSort(sort, by) {
  const isDescending = sort.by === by ? !sort.isDescending : DESCENDING_FIRST.includes(by);
  const asked = isDescending ? `-${by}` : by;
  return asked === "health" ? undefined : asked;
}

/**
 * @param {any[]} rows are sorted in place
 * @param {{by: string, isDescending: boolean}} sort
 */
export function sorted(rows, { by, isDescending }) {
  const turn = isDescending ? -1 : 1;
  const value = by === "health" ? (row) => rankOf(row.health) : (row) => row[by];
  return rows.sort((one, other) => turn * compared(value(one), value(other)) || (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
}

function compared(one, other) {
  const isNothing = one === null || one === undefined;
  if (isNothing || other === null || other === undefined) return isNothing ? (other === null || other === undefined ? 0 : -1) : 1;
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The different values of a column, for a choice. @param {Iterable<any>} rows @param {string} key */
export function valuesOf(rows, key) {
  const found = new Set();
  for (const row of rows) {
    for (const value of Array.isArray(row[key]) ? row[key] : [row[key]]) if (value) found.add(value);
  }
  return [...found].sort();
}
