/**
 * Addresses of pages: hash routes, so that no name of a connector stands in a path that a browser or a proxy
 * would fold. The only place that makes `href`s.
 */
import { signal } from "./dom.js";

/**
 * @typedef {object} Place
 * @property {string} page `connectors`, `connector`, `letters`, `workers`, `plugins`, `loggers`, `new`, or `unknown`
 * @property {string} [name] of the connector, or the class of the plugin
 * @property {string} [tab] of a connector's page
 * @property {Record<string, string>} query
 */

export const TABS = ["overview", "batches", "commits", "letters", "offsets", "config", "events"];
const PAGES = ["connectors", "letters", "workers", "plugins", "loggers", "new"];

/** Where we are. @type {import("./vendor/signals-core.js").Signal<Place>} */
export const place = signal(parsed(location.hash));

/**
 * The address of a page.
 * @param {string} page
 * @param {{name?: string, tab?: string, query?: Record<string, string | undefined>}} [to]
 */
export function href(page, { name, tab, query = {} } = {}) {
  let path = `#/${page}`;
  if (page === "connector") path = `#/c/${encoded(name)}${tab && tab !== "overview" ? `/${tab}` : ""}`;
  else if (name) path = `#/${page}/${encoded(name)}`;
  const asked = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) asked.set(key, value.toWellFormed());
  return asked.size ? `${path}?${asked}` : path;
}

/**
 * Go there; `replace` leaves no step for Back.
 * @param {string} page
 * @param {object} [to]
 * @param {{replace?: boolean}} [how]
 */
export function go(page, to = {}, { replace = false } = {}) {
  const target = href(page, to);
  if (target === location.hash) return;
  if (replace) {
    history.replaceState(null, "", target);
    place.value = parsed(target);
  } else {
    location.hash = target;
  }
}

/**
 * Change what the address asks for and stay on the page. An empty value takes a filter away.
 * @param {Record<string, string | undefined>} patch
 * @param {{replace?: boolean}} [how] replace while somebody types
 */
export function ask(patch, how = {}) {
  const { page, name, tab, query } = place.value;
  go(page, { name, tab, query: { ...query, ...patch } }, how);
}

/** @param {string} hash @returns {Place} */
export function parsed(hash) {
  const [path, asked = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const query = Object.fromEntries(new URLSearchParams(asked));
  const [page = "", ...rest] = path.split("/").map(decoded);
  if (page === "") return { page: "connectors", query };
  if (page === "c" && rest[0]) return { page: "connector", name: rest[0], tab: rest[1] || "overview", query };
  if (PAGES.includes(page)) return { page, name: rest[0], query };
  return { page: "unknown", query };
}

function encoded(name = "") {
  return encodeURIComponent(name.toWellFormed());
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

addEventListener("hashchange", () => {
  place.value = parsed(location.hash);
});
