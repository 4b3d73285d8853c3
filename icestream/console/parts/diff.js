/** What a save would change: key by key, old and new. */
import { html } from "../dom.js";
import { visible } from "../format.js";

/**
 * @param {{base: Record<string, string>, changes: Record<string, string | null>, secrets: Set<string>}} props
 */
export function Diff({ base, changes, secrets }) {
  const keys = Object.keys(changes).sort();
  return html`<table class="plain diff" aria-label="Changes">
    <thead><tr><th scope="col">Key</th><th scope="col">Stored</th><th scope="col">New</th></tr></thead>
    <tbody>${keys.map((key) => html`<tr key=${key}>
      <th scope="row"><code class="wrap-anywhere">${visible(key)}</code></th>
      <td><${Value} text=${base[key]} is="old" /></td>
      <td><${Value} text=${changes[key]} is="new" isSecret=${secrets.has(key)} /></td></tr>`)}</tbody>
  </table>`;
}

/** @param {{text: string | null | undefined, is?: "old" | "new", isSecret?: boolean}} props */
export function Value({ text, is = "old", isSecret = false }) {
  if (text === undefined || text === null) return html`<span class="muted">${is === "new" ? "removed" : "not set"}</span>`;
  if (isSecret && !/^\$\{[^}]*\}$/.test(text)) return html`<ins class="wrap-anywhere">a new secret</ins>`;
  const shown = text === "" ? html`<span class="muted">(empty)</span>` : visible(text);
  return is === "new" ? html`<ins class="wrap-anywhere">${shown}</ins>` : html`<del class="wrap-anywhere">${shown}</del>`;
}
