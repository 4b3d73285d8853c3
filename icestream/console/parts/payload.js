/** One dead letter: where it is from, what was wrong, and its bytes as JSON, text or hex. */
import { get } from "../api.js";
import { html, useState } from "../dom.js";
import { bytes, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Dialog } from "./dialog.js";
import { download } from "./download.js";
import { Icon } from "./icons.js";
import { Failure, Loading, Note, Time, Trace } from "./states.js";

/** @param {{connector: string, place: {partition: number, offset: string}, onClose: () => void}} props */
export function LetterDialog({ connector, place, onClose }) {
  const query = { connector, partition: place.partition, offset: place.offset };
  const { data, error, again } = useAnswer("letters/record", query);
  const title = data?.topic ? `${visibleLine(data.topic)}-${data.partition}@${data.offset}` : "Dead letter";
  return html`<${Dialog} title=${title} wide=${true} onClose=${onClose}>
    ${!data && (error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="the record" />`)}
    ${data && html`<${Letter} data=${data} query=${query} />`}<//>`;
}

function Letter({ data, query }) {
  const { "exception.stacktrace": trace, "exception.message": reason, ...context } = data.context;
  return html`
    <${Note} tone="bad" title=${visibleLine(data.stage ?? "rejected")}>${visible(reason) || "no reason told"}<//>
    <dl class="facts"><div><dt>Time of the record</dt><dd><${Time} ms=${data.time_ms} /></dd></div>
      <div><dt>In the queue</dt><dd>partition ${data.queue.partition}, offset ${data.queue.offset}</dd></div>
      <div><dt>Replayed</dt><dd>${data.replayed ? "yes" : "no"}</dd></div></dl>
    ${!data.is_whole && html`<${Note} tone="warn">The record was too large for the queue; only its topic has it.<//>`}
    ${data.shows_payloads
      ? html`<${Part} title="Value" part="value" payload=${data.value} query=${query} /><${Part} title="Key" part="key" payload=${data.key} query=${query} />
          ${data.headers.length > 0 && html`<details><summary>Headers of the record (${data.headers.length + data.more_headers})</summary><dl class="headers">${data.headers.map(
            ({ name, value }) => html`<div><dt><code>${visibleLine(name)}</code></dt><dd><pre>${value === null ? "null" : visible(value.text)}</pre></dd></div>`)}</dl></details>`}`
      : html`<${Note}>Keys, values and headers are not shown here: the level is <code>view</code>, or <code>icestream.console.payloads</code> is false.<//>`}
    <details><summary>About the error</summary><dl class="headers">${Object.entries(context).map(([name, value]) => html`<div key=${name}><dt><code>${visibleLine(name)}</code></dt><dd><pre>${visible(value)}</pre></dd></div>`)}</dl></details>
    ${trace && html`<${Trace} trace=${trace} />`}`;
}

/** @param {{title: string, part: "key" | "value", payload: any, query: any}} props */
function Part({ title, part, payload, query }) {
  const [isBusy, setBusy] = useState(false);
  if (payload === null) return html`<section><h3>${title}</h3><p class="muted">null</p></section>`;
  const whole = async () => {
    setBusy(true);
    try {
      const found = await get("letters/record", { ...query, whole: true });
      const content = Uint8Array.from(atob(found[part].base64), (sign) => sign.charCodeAt(0));
      download(`${part}-${query.partition}-${query.offset}.${payload.kind === "hex" ? "bin" : payload.kind === "json" ? "json" : "txt"}`, new Blob([content], { type: "application/octet-stream" }));
    } finally {
      setBusy(false);
    }
  };
  return html`<section class="payload" data-kind=${payload.kind}>
    <div class="row"><h3>${title}</h3><span class="small muted">${payload.kind === "hex" ? "bytes" : payload.kind === "json" ? "JSON" : "text"}, ${bytes(payload.size)}${payload.is_cut ? ", cut" : ""}</span>
      <button class="button plain small push" type="button" disabled=${isBusy} onClick=${whole}><${Icon} name="download" />Download whole</button></div>
    <pre class="trace" tabindex="0">${visible(payload.kind === "json" ? pretty(payload.text) : payload.text)}</pre></section>`;
}

/**
 * JSON with line ends and blanks, and nothing else changed: numbers keep their digits, keys their order.
 * @param {string} text
 */
export function pretty(text) {
  let out = "";
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"{}[\],:]+|[{}[\],:]/g)) {
    if (token === "}" || token === "]") {
      depth -= 1;
      out = /[{[]$/.test(out.trimEnd()) ? out.trimEnd() + token : `${out}\n${"  ".repeat(depth)}${token}`;
    } else if (token === "{" || token === "[") {
      depth += 1;
      out += `${token}\n${"  ".repeat(depth)}`;
    } else if (token === ",") {
      out += `,\n${"  ".repeat(depth)}`;
    } else {
      out += token === ":" ? ": " : token;
    }
  }
  return out;
}
