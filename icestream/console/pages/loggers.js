/** Levels of the loggers, for this worker or for all. */
import { send } from "../api.js";
import { html, useState } from "../dom.js";
import { visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Failure, Loading, Nothing, Time } from "../parts/states.js";
import { say } from "../parts/toast.js";
import { can } from "../store.js";

const LEVELS = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"];

export function Loggers() {
  const { data, error, again } = useAnswer("loggers", {}, { every: 10_000 });
  const [text, setText] = useState("");
  const [isCluster, setCluster] = useState(false);
  if (!data) return error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="loggers" />`;
  const all = Object.entries(data.loggers ?? data);
  const found = all.filter(([name]) => name.toLowerCase().includes(text.toLowerCase()));
  const isNew = text && !all.some(([name]) => name === text);
  const change = async (name, level) => {
    try {
      await send("PUT", "logger", { query: { logger: name, ...(isCluster && { scope: "cluster" }) }, body: { level } });
      say(`${visibleLine(name)} is ${level} ${isCluster ? "on all workers" : "on this worker"}`, "good");
    } catch (failure) {
      say(visibleLine(failure.message), "bad");
    }
    again();
  };
  return html`<div class="page-head"><h1>Loggers</h1>
      <label class="field push"><input type="checkbox" checked=${isCluster} onChange=${(event) => setCluster(event.target.checked)} />Changes are for all workers</label>
      <input type="search" aria-label="Search loggers, or name a new one" placeholder="Search, or name one" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
    <section class="card"><div class="table-frame" tabindex="0" role="region" aria-label="Loggers"><table class="plain"><thead><tr><th scope="col">Logger</th><th scope="col">Level</th><th scope="col">Set</th></tr></thead>
      <tbody>${[...(isNew && can("edit") ? [[text, { level: null }]] : []), ...found].map(
        ([name, { level, last_modified: at }]) => html`<tr key=${name}><td class="wrap-anywhere mono">${visibleLine(name)}</td>
          <td>${can("edit") ? html`<select aria-label="Level of ${visibleLine(name)}" value=${level ?? ""} onChange=${(event) => change(name, event.target.value)}>
            ${!LEVELS.includes(level) && html`<option value="" selected=${true}>${level ?? "choose"}</option>`}
            ${LEVELS.map((one) => html`<option value=${one} selected=${one === level}>${one}</option>`)}</select>` : visibleLine(level)}</td>
          <td>${at ? html`<${Time} ms=${at} />` : "–"}</td></tr>`,
      )}</tbody></table></div>
      ${found.length === 0 && !isNew && html`<${Nothing} title="No loggers"><p>None has this in its name.</p><//>`}</section>`;
}
