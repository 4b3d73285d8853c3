/**
 * An editor of one config: a form and a text over the same model, checked while somebody types. Config page and
 * wizard use it.
 */
import { ApiError, send } from "../api.js";
import { changed, changesTo, configFrom, kindOfFile, merged, textOf } from "../config_model.js";
import { html, useEffect, useMemo, useRef, useState } from "../dom.js";
import { visible } from "../format.js";
import { download } from "./download.js";
import { Icon } from "./icons.js";
import { SettingsForm, fieldsOf } from "./form.js";
import { Loading, Note } from "./states.js";
import { say } from "./toast.js";

/** Milliseconds without a key pressed, after which what is there is checked. */
const PAUSE = 350;

/**
 * The model of an edited config, and what the worker says about it.
 * @param {{connector?: string, base: Record<string, string>, masked?: string[], initial?: Record<string, string | null>}} about
 */
export function useEditing({ connector, base, masked = [], initial = {} }) {
  const [changes, setChanges] = useState(initial);
  const [report, setReport] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const [refused, setRefused] = useState(/** @type {Record<string, string[]>} */ ({}));
  const latest = useRef(0);
  const refusedAs = useRef("");
  const sent = JSON.stringify(changes);

  const check = async (deep) => {
    const turn = ++latest.current;
    try {
      const found = await send("POST", "validate", { query: { connector, deep }, body: changes });
      if (turn !== latest.current) return null;
      setReport(found);
      // A quick check knows less than the save that was refused: it ends those errors only for other changes.
      if (deep || refusedAs.current !== sent) setRefused({});
      setProblem("");
      return found;
    } catch (error) {
      if (turn !== latest.current) return null;
      if (error instanceof ApiError && error.body?.errors) setRefused(error.body.errors);
      else setProblem(error.message);
      return null;
    }
  };
  useEffect(() => {
    const timer = setTimeout(() => check(false), report ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [sent, connector, JSON.stringify(base)]);

  const hidden = useMemo(() => new Set(masked), [JSON.stringify(masked)]);
  const fields = fieldsOf({ report, base, changes, masked: hidden, errors: refused });
  return {
    base,
    changes,
    setChanges,
    report,
    problem,
    /** Nobody knows yet which settings there are, and where they stand. */
    isAwaited: !report && !problem && !Object.keys(refused).length,
    fields,
    errorCount: fields.reduce((sum, field) => sum + field.errors.length, 0),
    secrets: new Set(report?.secrets ?? []),
    hidden,
    check,
    /** What a save was refused for; checks that began before it say nothing any more. */
    refuse: (errors) => {
      latest.current += 1;
      refusedAs.current = sent;
      setRefused(errors);
    },
    change: (key, value) => setChanges((before) => changed(base, before, key, value)),
    undo: (key) => setChanges(({ [key]: _, ...others }) => others),
    rename: (key, meant) =>
      setChanges((before) => {
        const value = merged(base, before)[key];
        return changed(base, changed(base, before, key, null), meant, value ?? "");
      }),
  };
}

/** @typedef {ReturnType<typeof useEditing>} Editing */

/**
 * @param {{editing: Editing, tools?: any, only?: (key: string) => boolean}} props `only` are the fields of a step
 */
export function Editor({ editing, tools, only }) {
  const [tab, setTab] = useState("form");
  const { report, problem, fields } = editing;
  const warnings = report?.warnings ?? [];
  return html`<div class="stack">
    <div class="row">
      <div class="switch" role="group" aria-label="How the config is shown">
        <button type="button" class="chip" aria-pressed=${tab === "form"} onClick=${() => setTab("form")}>Form</button>
        <button type="button" class="chip" aria-pressed=${tab === "text"} onClick=${() => setTab("text")}>Text</button>
      </div>
      <${Files} editing=${editing} />
      ${tools}
    </div>
    ${problem && html`<${Note} tone="bad" title="Not checked">${visible(problem)}<//>`}
    ${warnings.length > 0 && html`<${Note} tone="warn" title="Warnings"><ul class="plain-list">${warnings.map((warning) => html`<li>${visible(warning)}</li>`)}</ul><//>`}
    ${tab === "form" && editing.isAwaited && html`<${Loading} what="the settings" />`}
    ${tab === "form" && !editing.isAwaited && html`<${SettingsForm} fields=${only ? fields.filter((field) => only(field.key)) : fields} groups=${report?.groups ?? []}
          onChange=${editing.change} onUndo=${editing.undo} onRename=${editing.rename} />`}
    ${tab === "text" && html`<${TextTab} editing=${editing} />`}
  </div>`;
}

/** The config as one text. What cannot be read stays in the box and changes nothing. */
function TextTab({ editing }) {
  const { base, changes, setChanges } = editing;
  const [kind, setKind] = useState(/** @type {"json" | "properties"} */ ("json"));
  const [text, setText] = useState(() => textOf(merged(base, changes), "json"));
  const [problem, setProblem] = useState("");
  const typed = (event) => {
    setText(event.target.value);
    try {
      const { config } = configFrom(event.target.value, kind);
      setChanges(changesTo(base, config));
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
  };
  const chosen = (event) => {
    setKind(event.target.value);
    setText(textOf(merged(base, changes), event.target.value));
    setProblem("");
  };
  return html`<div class="stack">
    <label class="field">As <select value=${kind} onChange=${chosen}><option value="json">JSON</option><option value="properties">.properties</option></select></label>
    <textarea class="config-text" aria-label="The config as text" rows="24" spellcheck=${false} aria-invalid=${problem ? "true" : undefined} value=${text} onInput=${typed}></textarea>
    ${problem && html`<p class="error" role="alert">${visible(problem)}</p>`}
    ${editing.hidden.size > 0 && html`<p class="small muted">[hidden] stands for a secret that is stored; as long as it stands there, the secret stays.</p>`}
    <${Errors} fields=${editing.fields} />
  </div>`;
}

/** Errors where there is no field to put them at. */
export function Errors({ fields }) {
  const faulty = fields.filter((field) => field.errors.length);
  if (!faulty.length) return null;
  return html`<${Note} tone="bad" title="${faulty.length} ${faulty.length === 1 ? "key has" : "keys have"} errors">
    <ul class="plain-list">${faulty.map((field) => html`<li key=${field.key}><code>${visible(field.key)}</code>: ${field.errors.map(visible).join(" ")}</li>`)}</ul><//>`;
}

/** Up- and download. What is downloaded can be uploaded: masks stay what they are. */
function Files({ editing }) {
  const { base, changes, setChanges } = editing;
  const input = useRef(null);
  const take = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    try {
      const { config } = configFrom(await file.text(), kindOfFile(file.name));
      const name = base.name ?? merged(base, changes).name;
      setChanges(changesTo(base, name === undefined ? config : { ...config, name }));
      say(`${file.name} is in the form; nothing is saved yet.`, "good");
    } catch (error) {
      say(`${file.name}: ${error.message}`, "bad");
    }
    event.target.value = "";
  };
  return html`<span class="row">
    <input ref=${input} class="unseen" type="file" tabindex="-1" aria-label="A file with a config" accept=".json,.properties,application/json,text/plain" onChange=${take} />
    <button class="button small" type="button" onClick=${() => input.current.click()}><${Icon} name="upload" />Upload</button>
    <button class="button small" type="button" onClick=${() => save(merged(base, changes), "json")}><${Icon} name="download" />JSON</button>
    <button class="button small" type="button" onClick=${() => save(merged(base, changes), "properties")}><${Icon} name="download" />.properties</button>
  </span>`;
}

function save(config, kind) {
  const name = (config.name ?? "connector").replace(/[^A-Za-z0-9._-]+/g, "_").slice(0, 80);
  download(`${name}.${kind}`, new Blob([textOf(config, kind)], { type: "text/plain" }));
}
