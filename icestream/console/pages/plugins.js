/** The classes that this worker knows, and the settings of each with their documentation. */
import { html, useState } from "../dom.js";
import { shortClass, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Failure, Loading, Nothing } from "../parts/states.js";
import { href, place } from "../routes.js";

const TYPES = { sink: "Sinks", source: "Sources", converter: "Converters", header_converter: "Header converters", transformation: "Transforms", predicate: "Predicates" };

export function Plugins() {
  const { name } = place.value;
  const [text, setText] = useState("");
  const { data, error, again } = useAnswer("plugins", {});
  if (!data) return error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="plugins" />`;
  const all = data.plugins ?? data;
  const found = all.filter((plugin) => plugin.class.toLowerCase().includes(text.toLowerCase()));
  const types = [...new Set([...Object.keys(TYPES), ...found.map((plugin) => plugin.type)])].filter((type) => found.some((plugin) => plugin.type === type));
  return html`<div class="page-head"><h1>Plugins</h1><input class="push" type="search" aria-label="Search classes" placeholder="Search classes" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
    <div class="split"><nav class="card side-list" aria-label="Classes">
      ${types.map((type) => html`<h2 class="side-title" key=${type}>${TYPES[type] ?? visibleLine(type)}</h2>
        ${found.filter((plugin) => plugin.type === type).map((plugin) => html`<a key=${plugin.class} href=${href("plugins", { name: plugin.class })} aria-current=${plugin.class === name ? "true" : undefined} title=${visibleLine(plugin.class)}>
          <strong>${shortClass(plugin.class)}</strong><span class="muted">${packageOf(plugin.class)} ${visibleLine(plugin.version ?? "")}</span></a>`)}`)}
      ${found.length === 0 && html`<p class="small muted">No class has this in its name.</p>`}</nav>
      ${name ? html`<${Settings} name=${name} key=${name} />` : html`<div class="card"><${Nothing} title="Choose a class"><p>Its settings are shown here, with what they mean and what they are by default.</p><//></div>`}</div>`;
}

function packageOf(name) {
  const parts = visibleLine(name).split(".");
  return parts.slice(0, -1).join(".");
}

function Settings({ name }) {
  const { data, error, again } = useAnswer("plugin", { plugin: name });
  if (!data) return html`<div class="card">${error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="settings" />`}</div>`;
  const settings = data.settings ?? data;
  const groups = [...new Set(settings.map((one) => one.group ?? "Common"))];
  return html`<section class="card" aria-label="Settings of ${shortClass(name)}"><header><h2 class="wrap-anywhere">${visibleLine(name)}</h2></header>
    ${settings.length === 0 ? html`<${Nothing} title="No settings"><p>This class has none of its own.</p><//>` : ""}
    ${groups.map((group) => html`<div key=${group} class="setting-group"><h3>${visibleLine(group)}</h3>
      ${settings.filter((one) => (one.group ?? "Common") === group).map((one) => html`<${Setting} key=${one.name} one=${one} />`)}</div>`)}</section>`;
}

function Setting({ one }) {
  const standard = one.default_value ?? one.default;
  return html`<div class="setting"><div><code><strong>${visibleLine(one.name)}</strong></code><div class="muted">${visibleLine(one.type).toLowerCase()}, ${visibleLine(one.importance ?? "").toLowerCase()} importance</div></div>
    <div><p class="wrap-anywhere">${visible(one.documentation)}</p><p class="muted wrap-anywhere">${one.required && (standard === null || standard === undefined) ? "required" : html`default: <code>${standard === "" || standard === null || standard === undefined ? "none" : visibleLine(standard)}</code>`}</p></div></div>`;
}
