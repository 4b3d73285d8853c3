/** Offsets: where the connector is in each partition, and what a change would do before it is made. */
import { act } from "../actions.js";
import { send } from "../api.js";
import { html, useState } from "../dom.js";
import { count, of, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Confirm } from "../parts/dialog.js";
import { Failure, Loading, Nothing, Note } from "../parts/states.js";
import { PlainTable } from "../parts/table.js";
import { say } from "../parts/toast.js";
import { can } from "../store.js";

/** @param {{connector: string, detail?: any, again?: () => void}} props */
export function Offsets({ connector, again: reload }) {
  const mayEdit = can("edit");
  const { data, error, again } = useAnswer(mayEdit ? "offsets" : null, { connector });
  const [isStopping, setStopping] = useState(false);
  if (!mayEdit) return html`<${Nothing} title="Offsets need the level edit"><p>The worker's config sets it with <code>icestream.console</code>.</p><//>`;
  if (!data) return error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="offsets" />`;
  const isStopped = data.state === "STOPPED";
  const stop = async () => {
    setStopping(true);
    await act(connector, "stop");
    setStopping(false);
    again();
    reload?.();
  };
  const done = (message) => {
    say(message, "good");
    again();
    reload?.();
  };
  return html`<div class="stack">
    ${!isStopped && html`<${Note} tone="idle" title="Offsets can be changed only while the connector is stopped"><span class="row">It is ${visibleLine(data.state)}.
      <button class="button small" type="button" disabled=${isStopping} onClick=${stop}>Stop it</button></span><//>`}
    ${data.partitions === null
      ? html`<${SourceOffsets} connector=${connector} entries=${data.offsets} isStopped=${isStopped} onDone=${done} />`
      : html`<${SinkOffsets} key=${JSON.stringify(data.partitions)} connector=${connector} partitions=${data.partitions} isStopped=${isStopped} onDone=${done} />`}
  </div>`;
}

const keyOf = (one) => `${one.topic}-${one.partition}`;

function SinkOffsets({ connector, partitions, isStopped, onDone }) {
  const [wanted, setWanted] = useState(/** @type {Record<string, string>} */ ({}));
  const [preview, setPreview] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const moves = partitions.filter((one) => (wanted[keyOf(one)] ?? "").trim() !== "");
  const type = (one, text) => {
    setWanted((before) => ({ ...before, [keyOf(one)]: text }));
    setPreview(null);
    setProblem("");
  };
  const body = { offsets: moves.map((one) => entryOf(one, wanted[keyOf(one)].trim())) };
  const look = async (isReset) => {
    setProblem("");
    try {
      const found = await send("POST", "offsets/preview", { query: { connector }, ...(!isReset && { body }) });
      setPreview({ ...found, isReset, body });
    } catch (error) {
      setPreview(null);
      setProblem(error.message);
    }
  };
  if (!partitions.length) return html`<${Nothing} title="No partitions yet"><p>None of the connector's topics exists.</p><//>`;
  const columns = [
    { title: "Partition", cell: (one) => html`<code class="wrap-anywhere">${visibleLine(keyOf(one))}</code>` },
    { title: "Beginning", class: "number", cell: (one) => count(one.beginning) },
    { title: "Table's next", class: "number", cell: (one) => count(one.table) },
    { title: "Group's next", class: "number", cell: (one) => count(one.group) },
    { title: "End", class: "number", cell: (one) => count(one.end) },
    {
      title: "Move to",
      cell: (one) => html`<input type="text" class="offset" inputmode="numeric" aria-label="Move ${keyOf(one)} to" placeholder="offset or beginning" autocomplete="off" disabled=${!isStopped}
        value=${wanted[keyOf(one)] ?? ""} onInput=${(event) => type(one, event.target.value)} />`,
    },
  ];
  return html`<section class="card"><${PlainTable} label="Offsets by partition" columns=${columns} rows=${partitions} keyOf=${keyOf} />
    <div class="row body">
      <button class="button primary" type="button" disabled=${!isStopped || !moves.length} onClick=${() => look(false)}>Preview ${moves.length ? of(moves.length, "move") : "moves"}</button>
      <button class="button danger" type="button" disabled=${!isStopped} onClick=${() => look(true)}>Reset all…</button>
    </div></section>
    ${problem && html`<${Note} tone="bad" title="This would be refused">${visible(problem)}<//>`}
    ${preview && html`<${Preview} connector=${connector} preview=${preview} onClose=${() => setPreview(null)} onDone=${onDone} />`}`;
}

function entryOf(one, text) {
  const offset = /^(beginning|earliest|null)$/i.test(text) ? null : { kafka_offset: text };
  return { partition: { kafka_topic: one.topic, kafka_partition: one.partition }, offset };
}

/** The consequences in numbers, and the button that makes them true. */
function Preview({ connector, preview, onClose, onDone }) {
  const [isAsking, setAsking] = useState(false);
  const { totals, isReset } = preview;
  const apply = async () => {
    try {
      const answer = isReset
        ? await send("DELETE", "offsets", { query: { connector } })
        : await send("PATCH", "offsets", { query: { connector }, body: preview.body });
      onClose();
      onDone(answer.message);
    } catch (error) {
      say(visibleLine(error.message), "bad");
      setAsking(false);
    }
  };
  const columns = [
    { title: "Partition", cell: (one) => html`<code class="wrap-anywhere">${visibleLine(keyOf(one))}</code>` },
    { title: "From", class: "number", cell: (one) => count(one.from) },
    { title: "To", class: "number", cell: (one) => count(one.to) },
    { title: "Read again", class: "number", cell: (one) => count(one.again) },
    { title: "Skipped for ever", class: "number", cell: (one) => count(one.skipped) },
    { title: "No longer in the topic", class: "number", cell: (one) => count(one.gone) },
    { title: "Then to read", class: "number", cell: (one) => count(one.left) },
  ];
  return html`<section class="card" aria-label="Preview"><header><h2>${isReset ? "What a reset would do" : "What this would do"}</h2></header>
    <${PlainTable} label="Preview by partition" columns=${columns} rows=${preview.partitions} keyOf=${keyOf} />
    <ul class="plain-list body consequences">
      ${totals.again > 0 && html`<li><strong>${of(totals.again, "record")}</strong> will be read again, so their rows will be in the table twice, unless it is written by upserts.</li>`}
      ${totals.skipped > 0 && html`<li><strong>${of(totals.skipped, "record")}</strong> will be skipped for ever.</li>`}
      ${totals.gone > 0 && html`<li><strong>${of(totals.gone, "record")}</strong> are no longer in the topic.</li>`}
      ${!totals.again && !totals.skipped && !totals.gone && html`<li>No record is read again, and none is skipped.</li>`}
      <li class="muted">The table gets a commit without rows; <code>verify</code> knows of it. Offsets are counted: markers of transactions count as records.</li>
    </ul>
    <div class="row body">
      <button class="button" type="button" onClick=${onClose}>Leave it</button>
      <button class="button ${isReset ? "danger" : "primary"}" type="button" onClick=${() => (isReset ? setAsking(true) : apply())}>${isReset ? "Reset all offsets…" : `Move ${of(preview.partitions.length, "partition")}`}</button>
    </div>
    ${isAsking && html`<${Confirm} title="Reset all offsets?" verb="Reset" danger=${true} typed=${connector} onYes=${apply} onClose=${() => setAsking(false)}>
      <p>The connector begins again at the beginning of its topics: ${of(totals.again, "record")} read again.</p><//>`}
  </section>`;
}

/** Of a source only its plugin can read the offsets: they are shown as they are. */
function SourceOffsets({ connector, entries, isStopped, onDone }) {
  const [isAsking, setAsking] = useState(false);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const run = async (method, body) => {
    setProblem("");
    try {
      onDone((await send(method, "offsets", { query: { connector }, ...(body && { body }) })).message);
      setAsking(false);
    } catch (error) {
      setProblem(error.message);
      setAsking(false);
    }
  };
  const alter = () => {
    try {
      run("PATCH", { offsets: JSON.parse(text) });
    } catch (error) {
      setProblem(`This is not JSON: ${error.message}`);
    }
  };
  const columns = [
    { title: "Partition of the source", cell: (one) => html`<code class="wrap-anywhere">${visible(JSON.stringify(one.partition))}</code>` },
    { title: "Offset", cell: (one) => html`<code class="wrap-anywhere">${visible(JSON.stringify(one.offset))}</code>` },
  ];
  return html`${entries.length ? html`<section class="card"><${PlainTable} label="Offsets of the source" columns=${columns} rows=${entries} /></section>` : html`<${Nothing} title="The source has no offsets yet" />`}
    <details class="card"><summary>Change offsets</summary><div class="stack body">
      <textarea rows="6" aria-label="New offsets as JSON" spellcheck=${false} placeholder='[{"partition": {…}, "offset": {…}}]' value=${text} onInput=${(event) => setText(event.target.value)} disabled=${!isStopped}></textarea>
      <div class="row"><button class="button primary" type="button" disabled=${!isStopped || !text.trim()} onClick=${alter}>Change</button>
        <button class="button danger" type="button" disabled=${!isStopped} onClick=${() => setAsking(true)}>Reset all…</button></div>
      ${problem && html`<p class="error" role="alert">${visible(problem)}</p>`}</div></details>
    ${isAsking && html`<${Confirm} title="Reset all offsets?" verb="Reset" danger=${true} typed=${connector} onYes=${() => run("DELETE")} onClose=${() => setAsking(false)}>
      <p>The source is read again from its beginning; whatever it sent before is sent again.</p><//>`}`;
}
