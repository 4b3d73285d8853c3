/** A new connector: class, settings, transforms and errors, review. Or from a file, or like another one. */
import { ApiError, get, send } from "../api.js";
import { changesTo, configFrom, kindOfFile, merged, textOf } from "../config_model.js";
import { html, useEffect, useRef, useState } from "../dom.js";
import { of, shortClass, visible, visibleLine } from "../format.js";
import { useAnswer } from "../load.js";
import { Copyable } from "../parts/copy.js";
import { Editor, Errors, useEditing } from "../parts/editor.js";
import { Icon } from "../parts/icons.js";
import { Failure, Loading, Nothing, Note } from "../parts/states.js";
import { say } from "../parts/toast.js";
import { go, place } from "../routes.js";
import { can, rows } from "../store.js";

const STEPS = ["Class", "Settings", "Transforms and errors", "Review"];
/** Keys of the third step. */
const LATER = /^(transforms|predicates|errors)(\.|$)/;

export function Create() {
  const copied = place.value.query.copy;
  if (!can("edit")) return html`<${Nothing} title="New connectors need the level edit"><p>The worker's config sets it with <code>icestream.console</code>.</p><//>`;
  return copied ? html`<${Copied} key=${copied} name=${copied} />` : html`<${Wizard} />`;
}

/** Like another connector, without its name and without its secrets. */
function Copied({ name }) {
  const { data, error, again } = useAnswer("config", { connector: name });
  if (!data) return error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="the config" />`;
  const { name: _, ...config } = data.config;
  for (const key of data.masked) delete config[key];
  return html`<${Wizard} initial=${config} left=${data.masked} from=${name} />`;
}

/** @param {{initial?: Record<string, string>, left?: string[], from?: string}} props */
function Wizard({ initial = {}, left = [], from = "" }) {
  const [step, setStep] = useState(initial["connector.class"] ? 1 : 0);
  const [name, setName] = useState("");
  const editing = useEditing({ base: {}, initial });
  const heading = useRef(null);
  const config = merged({}, editing.changes);
  const move = (to) => {
    setStep(to);
    setTimeout(() => heading.current?.focus(), 0);
  };
  const isOf = (key) => (step === 2 ? LATER.test(key) : !LATER.test(key) && key !== "name" && key !== "connector.class");
  const errors = editing.fields.filter((field) => field.errors.length && field.key !== "name");
  const wrongHere = step === 0 ? !config["connector.class"] || errors.some((field) => field.key === "connector.class") : errors.some((field) => isOf(field.key));
  const isChecked = editing.report !== null && !editing.problem;
  const canGoOn = isChecked && !wrongHere && (step !== 1 || name.trim() !== "");
  return html`<div class="stack wizard">
    <h1>New connector</h1>
    <ol class="steps" aria-label="Steps">${STEPS.map((title, index) => html`<li key=${title} aria-current=${index === step ? "step" : undefined} data-done=${index < step ? "true" : undefined}>${title}</li>`)}</ol>
    ${from && html`<${Note} title="A copy of ${visibleLine(from)}">${left.length ? html`<span>Secrets are not copied; write anew: ${left.map((key, index) => html`${index > 0 && ", "}<code>${visibleLine(key)}</code>`)}</span>` : html`<span>Give it another name.</span>`}<//>`}
    <h2 ref=${heading} tabindex="-1">${STEPS[step]}</h2>
    ${step === 0 && html`<${ClassStep} chosen=${config["connector.class"]} editing=${editing} onNamed=${setName} onChosen=${() => move(1)} />`}
    ${(step === 1 || step === 2) && html`
      ${step === 1 && html`<label class="setting-head stack"><span><code>name</code> <span class="tag">required</span></span><input id="connector-name" type="text" autocomplete="off" spellcheck=${false} value=${name} onInput=${(event) => setName(event.target.value)} />
        ${rows.value?.has(name.trim()) && html`<span class="error">A connector of this name exists.</span>`}</label>`}
      ${step === 2 && html`<p class="small muted">Write names into <code>transforms</code>, such as <code>route,mask</code>: each gets its own settings. What a sink rejects goes to <code>errors.deadletterqueue.topic.name</code> if <code>errors.tolerance</code> is <code>all</code>.</p>`}
      <${Editor} key=${step} editing=${editing} only=${isOf} />`}
    ${step === 3 && html`<${Review} name=${name.trim()} config=${config} editing=${editing} />`}
    ${step < 3 && html`<div class="row">
      ${step > 0 && html`<button class="button" type="button" onClick=${() => move(step - 1)}>Back</button>`}
      <button class="button primary" type="button" disabled=${!canGoOn} onClick=${() => move(step + 1)}>Next: ${STEPS[step + 1]}</button>
      ${wrongHere && errors.length > 0 && step > 0 && html`<span class="small muted" role="status">${of(errors.filter((field) => isOf(field.key)).length, "key")} of this step must be corrected first.</span>`}
    </div>`}
    ${step === 3 && html`<div class="row"><button class="button" type="button" onClick=${() => move(2)}>Back</button></div>`}
  </div>`;
}

function ClassStep({ chosen, editing, onNamed, onChosen }) {
  const { data, error, again } = useAnswer("plugins");
  const [search, setSearch] = useState("");
  const input = useRef(null);
  if (!data) return error ? html`<${Failure} error=${error} retry=${again} />` : html`<${Loading} what="the classes" />`;
  const wanted = search.trim().toLowerCase();
  const classes = (data.plugins ?? data).filter((one) => ["sink", "source"].includes(one.type) && one.class.toLowerCase().includes(wanted));
  const take = (name) => {
    editing.change("connector.class", name);
    onChosen();
  };
  const upload = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    try {
      const { config, name } = configFrom(await file.text(), kindOfFile(file.name));
      const { name: _, ...rest } = config;
      editing.setChanges(changesTo({}, rest));
      if (name) onNamed(name);
      onChosen();
    } catch (problem) {
      say(`${file.name}: ${problem.message}`, "bad");
    }
  };
  return html`<div class="stack">
    <div class="row"><input type="search" aria-label="Search classes" placeholder="Search classes" value=${search} onInput=${(event) => setSearch(event.target.value)} />
      <span class="push row"><input ref=${input} class="unseen" type="file" tabindex="-1" aria-label="A file with a connector" accept=".json,.properties,application/json,text/plain" onChange=${upload} />
        <button class="button" type="button" onClick=${() => input.current.click()}><${Icon} name="upload" />From a file</button>
        <${CopyOf} /></span></div>
    <ul class="classes">${classes.map((one) => html`<li key=${one.class}><button class="card class-choice" type="button" aria-pressed=${chosen === one.class} onClick=${() => take(one.class)}>
      <strong>${shortClass(one.class)}</strong><span class="state tone-idle">${visibleLine(one.type)}</span><span class="small muted wrap-anywhere">${visibleLine(one.class)} ${visibleLine(one.version)}</span></button></li>`)}</ul>
    ${!classes.length && html`<p class="muted">No class has this in its name. <button class="link-button" type="button" onClick=${() => setSearch("")}>Show all</button></p>`}
  </div>`;
}

function CopyOf() {
  const names = [...(rows.value?.keys() ?? [])].sort();
  if (!names.length) return null;
  return html`<label class="field">Like <select value="" onChange=${(event) => event.target.value && go("new", { query: { copy: event.target.value } })}>
    <option value="">another connector…</option>${names.slice(0, 2000).map((name) => html`<option key=${name} value=${name}>${visibleLine(name)}</option>`)}</select></label>`;
}

/** The whole config, checked deep, and what else would create it. */
function Review({ name, config, editing }) {
  const [state, setState] = useState("RUNNING");
  const [checked, setChecked] = useState(/** @type {"" | "busy" | "done"} */ (""));
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const whole = JSON.stringify(config);
  useEffect(() => {
    let isGone = false;
    setChecked("busy");
    // Behind the check of what was typed last, which would take its place.
    const timer = setTimeout(async () => {
      await editing.check(true);
      if (!isGone) setChecked("done");
    }, 0);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [whole]);
  const errors = editing.fields.filter((field) => field.errors.length && field.key !== "name");
  const isGood = checked === "done" && editing.report?.deep === true && !errors.length && !editing.problem;
  const document = { name, config: { name, ...config }, ...(state !== "RUNNING" && { initial_state: state }) };
  const create = async () => {
    setBusy(true);
    setProblem("");
    try {
      await send("POST", "create", { body: { name, config, initial_state: state } });
      say(`${visibleLine(name)} is created.`, "good");
      go("connector", { name });
    } catch (error) {
      if (error instanceof ApiError && error.body?.errors) editing.refuse(error.body.errors);
      setProblem(error.message);
    }
    setBusy(false);
  };
  const shown = hideSecrets(document, editing.secrets);
  return html`<div class="stack">
    <div role="status">${checked !== "done" && html`<span class="row"><span class="spin"></span>Checking everything, and what the config points at…</span>`}
      ${isGood && html`<${Note} tone="good" title="Everything checked">Catalogs, topics and whatever else the config names were asked.<//>`}</div>
    ${checked === "done" && html`<${Errors} fields=${errors} />`}
    ${checked === "done" && editing.problem && html`<${Note} tone="bad" title="Not checked">${visible(editing.problem)}<//>`}
    <section class="card"><header><h3>${visibleLine(name)}</h3></header><pre class="body">${visible(textOf(shown.config, "json"))}</pre></section>
    <fieldset class="choices"><legend>Start as</legend>${["RUNNING", "PAUSED", "STOPPED"].map((one) => html`<label class="field"><input type="radio" name="initial-state" checked=${state === one} onChange=${() => setState(one)} />${one}</label>`)}</fieldset>
    <details><summary>The same by command</summary><div class="stack body">
      <${Copyable} what="command" text=${curlOf(shown)} /><${Copyable} what="command" text=${commandOf(shown)} />
      ${editing.secrets.size > 0 && html`<p class="small muted">Secrets are left out: put them in.</p>`}</div></details>
    ${problem && html`<${Note} tone="bad" title="Not created">${visible(problem)}<//>`}
    <div class="row"><button class="button primary" type="button" disabled=${!isGood || isBusy} onClick=${create}>Create the connector</button></div>
  </div>`;
}

function hideSecrets(document, secrets) {
  const config = Object.fromEntries(Object.entries(document.config).map(([key, value]) => [key, secrets.has(key) && !/^\$\{[^}]*\}$/.test(value) ? "…" : value]));
  return { ...document, config };
}

const quoted = (text) => `'${text.replace(/'/g, "'\\''")}'`;

function curlOf(document) {
  const url = new URL("../connectors", new URL(".", window.document.baseURI));
  return `curl -X POST -H 'Content-Type: application/json' ${quoted(String(url))} -d ${quoted(JSON.stringify(document))}`;
}

function commandOf(document) {
  const { name, config, initial_state: state } = document;
  return `echo ${quoted(JSON.stringify({ name, config, ...(state && { initial_state: state }) }))} | icestream connector create -f -`;
}
