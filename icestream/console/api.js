/** Requests to the worker: one header of ours, JSON both ways, errors as sentences. */

const BASE = new URL("api/", new URL(".", document.baseURI));
/** What a page of another origin cannot send without asking first. */
export const OUR_HEADER = { "X-Icestream-Console": "1" };

/** An answer that is an error, or no answer at all (`status` 0). */
export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {any} [body] */
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

/**
 * @param {string} path below `/console/api/`
 * @param {Record<string, string | number | boolean | undefined | null>} [query]
 */
export function address(path, query = {}) {
  const url = new URL(path, BASE);
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) url.searchParams.set(key, String(value).toWellFormed());
  }
  return url;
}

/**
 * @param {string} path
 * @param {object} [query]
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 */
export function get(path, query, { signal } = {}) {
  return send("GET", path, { query, signal });
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{query?: object, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal}} [options]
 * @returns {Promise<any>} the JSON of the answer, or null if it has no body
 */
export async function send(method, path, { query, body, headers = {}, signal } = {}) {
  return (await exchange(method, path, { query, body, headers, signal })).body;
}

/**
 * The same with the headers of the answer.
 * @returns {Promise<{body: any, headers: Headers}>}
 */
export async function exchange(method, path, { query, body, headers = {}, signal } = {}) {
  const sent = { ...OUR_HEADER, Accept: "application/json", ...headers };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let response;
  let text;
  try {
    response = await fetch(address(path, query), {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      signal,
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "The worker does not answer.");
  }
  const answer = parsed(text);
  if (!response.ok) throw new ApiError(response.status, messageOf(response, answer), answer);
  return { body: answer, headers: response.headers };
}

function parsed(text) {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function messageOf(response, answer) {
  if (answer && typeof answer.message === "string" && answer.message) return answer.message;
  if (response.status === 401) return "The worker asks for a login. Load the page again to be asked for it.";
  return `The worker answered ${response.status} ${response.statusText}`.trim();
}
