/** A form over a connector's config, made from what `validate` tells: groups, documentation, choices, errors. */
import { html, useId, useRef, useState } from "../dom.js";
import { visible, visibleLine } from "../format.js";
import { Icon } from "./icons.js";

/**
 * @typedef {object} Field one key, whether the report knows it or not
 * @property {string} key
 * @property {any} definition null: nobody knows the key
 * @property {string[]} errors
 * @property {string[]} choices recommended values, or the key that was meant
 * @property {string | undefined} value as edited
 * @property {boolean} isChanged
 * @property {boolean} isMasked what is shown stands for what is stored
 * @property {boolean} isSecret
 */

/**
 * All keys of report and config as fields. What the report does not know is a field as well.
 * @param {{report: any, base: Record<string, string>, changes: Record<string, string | null>, masked: Set<string>, errors?: Record<string, string[]>}} edited
 * @returns {Field[]}
 */
export function fieldsOf({ report, base, changes, masked, errors = {} }) {
  const secrets = new Set(report?.secrets ?? []);
  const config = { ...base, ...changes };
  const reported = new Map((report?.configs ?? []).filter((one) => one.value.visible !== false || config[one.value.name] != null).map((one) => [one.value.name, one]));
  const keys = new Set([...reported.keys(), ...Object.keys(config), ...Object.keys(errors)]);
  return [...keys].filter((key) => reported.has(key) || Object.hasOwn(errors, key) || Object.hasOwn(base, key) || config[key] !== null).map((key) => {
    const known = reported.get(key);
    const isChanged = Object.hasOwn(changes, key);
    return {
      key,
      definition: known?.definition ?? null,
      errors: [...new Set([...(known?.value.errors ?? []), ...(Object.hasOwn(errors, key) ? errors[key] : [])])],
      choices: known?.value.recommended_values ?? [],
      value: config[key] ?? undefined,
      isChanged,
      isMasked: masked.has(key) && !isChanged,
      isSecret: secrets.has(key),
    };
  });
}

const FIRST = "Required and changed";
const MORE = "More settings";
const OTHER = "Other keys";

/**
 * Under which title each key stands, in the order of the page: what must be looked at first, then the groups, then
 * keys that nobody knows.
 * @param {Field[]} fields @param {string[]} groups
 * @returns {Map<string, string>}
 */
export function placesOf(fields, groups) {
  const titles = [FIRST, ...groups, MORE, OTHER];
  const titleOf = ({ definition, isChanged, errors }) => {
    if (definition?.required || isChanged || errors.length) return FIRST;
    if (!definition) return OTHER;
    return groups.includes(definition.group) ? definition.group : MORE;
  };
  const found = fields.map((field) => ({ field, title: titleOf(field) }));
  return new Map(
    titles.flatMap((title) => {
      const members = found.filter((one) => one.title === title);
      if (groups.includes(title)) members.sort((one, other) => one.field.definition.order_in_group - other.field.definition.order_in_group);
      return members.map(({ field }) => [field.key, title]);
    }),
  );
}

/** @param {Field[]} fields @param {Map<string, string>} places */
function sectionsOf(fields, places) {
  const byKey = new Map(fields.map((field) => [field.key, field]));
  const sections = new Map();
  for (const [key, title] of places) {
    if (byKey.has(key)) sections.set(title, [...(sections.get(title) ?? []), byKey.get(key)]);
  }
  return [...sections].map(([title, members]) => ({
    title,
    fields: members,
    isOpen: title === FIRST || title === OTHER || members.some((field) => field.value !== undefined),
  }));
}

/** @param {Field} field @param {string} text */
export function isFound(field, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return true;
  const { key, value, definition } = field;
  return [key, value, definition?.display_name, definition?.documentation].some((part) => part?.toLowerCase().includes(wanted));
}

/**
 * @param {object} props
 * @param {Field[]} props.fields
 * @param {string[]} props.groups
 * @param {(key: string, value: string | null) => void} props.onChange null takes the key away, or puts it back
 * @param {(key: string) => void} props.onUndo
 * @param {(key: string, meant: string) => void} props.onRename
 * @param {boolean} [props.hasSearch]
 */
export function SettingsForm({ fields, groups, onChange, onUndo, onRename, hasSearch = true }) {
  const [search, setSearch] = useState("");
  const [isOnlySet, setOnlySet] = useState(false);
  const { form, places, left } = usePlaces(fields, groups);
  const found = fields.filter((field) => isFound(field, search) && (!isOnlySet || field.value !== undefined || field.errors.length));
  const sections = sectionsOf(found, places);
  const isNarrow = Boolean(search.trim()) || isOnlySet;
  return html`<div class="settings" ref=${form} onFocusOut=${left}>
    ${hasSearch && html`<div class="row settings-tools">
      <input type="search" aria-label="Search settings" placeholder="Search keys and their documentation" value=${search} onInput=${(event) => setSearch(event.target.value)} />
      <label class="field"><input type="checkbox" checked=${isOnlySet} onChange=${(event) => setOnlySet(event.target.checked)} />Only what is set</label>
    </div>`}
    ${sections.map((section) => html`<${Section} key=${`${section.title} ${isNarrow}`} section=${section} isOpen=${section.isOpen || isNarrow} onChange=${onChange} onUndo=${onUndo} onRename=${onRename} />`)}
    ${!sections.length && html`<p class="muted">No setting has this in its key or documentation. <button class="link-button" type="button" onClick=${() => { setSearch(""); setOnlySet(false); }}>Show all</button></p>`}
    <${NewKey} taken=${fields} onAdd=${(key) => onChange(key, "")} />
  </div>`;
}

/**
 * Where each field stands. Nothing moves while somebody is in the form: a field that moves to another section is
 * another element, without the focus of whoever types in it.
 * @param {Field[]} fields @param {string[]} groups
 */
function usePlaces(fields, groups) {
  const form = useRef(/** @type {HTMLElement | null} */ (null));
  const places = useRef(/** @type {Map<string, string>} */ (new Map()));
  const [, setTurn] = useState(0);
  const wanted = placesOf(fields, groups);
  const isInside = form.current?.contains(document.activeElement);
  places.current = isInside ? new Map([...places.current, ...[...wanted].filter(([key]) => !places.current.has(key))]) : wanted;
  return { form, places: places.current, left: () => setTurn((before) => before + 1) };
}

function Section({ section, isOpen, ...handlers }) {
  const faulty = section.fields.filter((field) => field.errors.length).length;
  const set = section.fields.filter((field) => field.value !== undefined).length;
  return html`<details class="card section" open=${isOpen || faulty > 0}>
    <summary><h2>${visibleLine(section.title)}</h2><span class="small muted">${set} of ${section.fields.length} set</span>
      ${faulty > 0 && html`<span class="state tone-bad">${faulty} with errors</span>`}</summary>
    <div class="fields">${section.fields.map((field) => html`<${FieldRow} key=${field.key} field=${field} ...${handlers} />`)}</div>
  </details>`;
}

/** @param {{field: Field, onChange: any, onUndo: any, onRename: any}} props */
function FieldRow({ field, onChange, onUndo, onRename }) {
  const id = useId();
  const { key, definition, errors, isChanged } = field;
  const meant = !definition && errors.length ? field.choices.find((choice) => !choice.endsWith("*")) : undefined;
  const isSet = field.value !== undefined;
  return html`<div class="setting" data-key=${key} data-changed=${isChanged ? "true" : undefined} data-faulty=${errors.length ? "true" : undefined}>
    <div class="setting-head">
      <label for=${id}><code class="wrap-anywhere">${visibleLine(key)}</code></label>
      ${definition?.required && html`<span class="tag">required</span>`}
      ${isChanged && html`<span class="tag changed">${isSet ? "changed" : "removed"}</span>`}
      ${definition?.importance === "HIGH" && !definition.required && html`<span class="tag">important</span>`}
    </div>
    <div class="setting-value">
      <${FieldInput} id=${id} field=${field} onChange=${onChange} />
      ${isChanged && html`<button class="button plain small" type="button" onClick=${() => onUndo(key)} aria-label="Undo the change of ${key}">Undo</button>`}
      ${isSet && !isChanged && key !== "name" && html`<button class="button plain icon small" type="button" onClick=${() => onChange(key, null)} aria-label="Remove ${key}" title="Remove this key"><${Icon} name="close" /></button>`}
    </div>
    <div class="setting-notes" id=${`${id}-notes`}>
      ${errors.map((error) => html`<p class="error">${visible(error)}</p>`)}
      ${meant && html`<p><button class="button small" type="button" onClick=${() => onRename(key, meant)}>Use <code>${visibleLine(meant)}</code> instead</button></p>`}
      ${definition?.documentation && html`<p class="small muted">${visible(definition.documentation)}</p>`}
      ${definition?.default_value != null && definition.default_value !== "" && html`<p class="small muted">Default: <code class="wrap-anywhere">${visibleLine(definition.default_value)}</code></p>`}
      ${!definition && !errors.length && html`<p class="small muted">No setting of this class by name; it is kept as it is.</p>`}
    </div>
  </div>`;
}

/** @param {{id: string, field: Field, onChange: (key: string, value: string | null) => void}} props */
function FieldInput({ id, field, onChange }) {
  const { key, definition, value, choices, isMasked, isSecret, errors } = field;
  const about = { id, "aria-describedby": `${id}-notes`, "aria-invalid": errors.length ? "true" : undefined, "aria-required": definition?.required ? "true" : undefined };
  const typed = (event) => onChange(key, event.target.value === "" && !isSecret ? null : event.target.value);
  if (isMasked) {
    return html`<input ...${about} type="text" value=${visibleLine(value)} readonly class="masked" />
      <button class="button small" type="button" onClick=${() => { onChange(key, ""); focusSoon(id); }} aria-label="Replace the secret ${key}">Replace</button>`;
  }
  if (key === "name" && value !== undefined && !field.isChanged) return html`<input ...${about} type="text" value=${visibleLine(value)} readonly />`;
  if (definition?.type === "BOOLEAN" && (value === undefined || value === "true" || value === "false")) {
    return html`<select ...${about} value=${value ?? ""} onChange=${typed}>
      <option value="">${definition.default_value != null ? `default (${definition.default_value})` : "not set"}</option><option value="true">true</option><option value="false">false</option></select>`;
  }
  if (value?.includes("\n")) return html`<textarea ...${about} rows="4" spellcheck=${false} value=${value} onInput=${typed}></textarea>`;
  const list = definition && choices.length ? `${id}-choices` : undefined;
  const type = isSecret && !value?.startsWith("${") ? "password" : "text";
  return html`<input ...${about} type=${type} list=${list} autocomplete=${isSecret ? "new-password" : "off"} spellcheck=${false} value=${value ?? ""}
      placeholder=${definition?.default_value ?? ""} onInput=${typed} />
    ${list && html`<datalist id=${list}>${choices.map((choice) => html`<option value=${choice}></option>`)}</datalist>`}`;
}

function focusSoon(id) {
  setTimeout(() => document.getElementById(id)?.focus(), 0);
}

/** @param {{taken: Field[], onAdd: (key: string) => void}} props */
function NewKey({ taken, onAdd }) {
  const [key, setKey] = useState("");
  const wanted = key.trim();
  const isTaken = taken.some((field) => field.key === wanted && field.value !== undefined);
  const add = (event) => {
    event.preventDefault();
    if (!wanted || isTaken) return;
    onAdd(wanted);
    setKey("");
  };
  return html`<form class="row new-key" onSubmit=${add}>
    <input type="text" aria-label="Another key" placeholder="another.key" autocomplete="off" spellcheck=${false} value=${key} onInput=${(event) => setKey(event.target.value)} />
    <button class="button small" type="submit" disabled=${!wanted || isTaken}><${Icon} name="plus" />Add key</button>
    ${isTaken && html`<span class="small muted">It is there already.</span>`}
  </form>`;
}
