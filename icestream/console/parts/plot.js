/** Numbers over time, drawn by uPlot, which is loaded with the first plot; each plot is a table too. */
import { html, useEffect, useRef, useState } from "../dom.js";
import { short } from "../format.js";
import { prefs } from "../store.js";
import { Icon } from "./icons.js";
import { Time } from "./states.js";

let library = /** @type {Promise<any> | null} */ (null);

function uPlotLoaded() {
  library ??= import("../vendor/uplot.js").then((module) => module.default);
  return library;
}

/**
 * @typedef {object} Line
 * @property {string} label
 * @property {(number | null)[]} values
 * @property {string} color the name of a CSS variable
 */

/**
 * @param {object} props
 * @param {string} props.title
 * @param {any} props.value the newest, large
 * @param {number[]} props.times in seconds
 * @param {Line[]} props.lines
 * @param {(value: number | null) => string} props.format
 * @param {(value: number) => string} [props.axis] shorter
 */
export function Plot({ title, value, times, lines, format, axis = short }) {
  const [isTable, setTable] = useState(false);
  return html`<section class="card plot" aria-label=${title}>
    <header><h2>${title}</h2><button class="as-table" type="button" aria-pressed=${isTable} aria-label="${title} as table" title="As table" onClick=${() => setTable(!isTable)}><${Icon} name=${isTable ? "chart" : "table"} size=${15} /></button></header>
    <div class="value">${value}${lines.length > 1 && html` <span>${lines.map(({ label, color }) => html`<span class="key" style=${{ "--key": `var(${color})` }}>${label}</span>`)}</span>`}</div>
    ${isTable ? html`<${AsTable} title=${title} times=${times} lines=${lines} format=${format} />` : html`<${Canvas} title=${title} times=${times} lines=${lines} format=${format} axis=${axis} />`}
  </section>`;
}

function AsTable({ title, times, lines, format }) {
  const order = times.map((_, index) => index).reverse();
  return html`<div class="table-frame" tabindex="0" role="region" aria-label="${title}, as table"><table class="plain">
    <thead><tr><th scope="col">Time</th>${lines.map(({ label }) => html`<th scope="col" class="number">${label}</th>`)}</tr></thead>
    <tbody>${order.map((index) => html`<tr key=${times[index]}><td><${Time} ms=${times[index] * 1000} /></td>${lines.map(({ values }) => html`<td class="number">${format(values[index] ?? null)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

function Canvas({ title, times, lines, format, axis }) {
  const frame = useRef(null);
  const plot = useRef(null);
  const [theme, setTheme] = useState(0);
  const isUtc = prefs.utc.value;
  const shape = `${lines.map(({ label }) => label).join()} ${theme} ${prefs.theme.value} ${isUtc} ${times.length > 1}`;
  const data = [times, ...lines.map(({ values }) => values)];

  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setTheme((before) => before + 1);
    dark.addEventListener("change", changed);
    return () => dark.removeEventListener("change", changed);
  }, []);

  useEffect(() => {
    if (times.length < 2) return undefined;
    let isGone = false;
    const element = frame.current;
    const observer = new ResizeObserver(() => plot.current?.setSize(sizeOf(element)));
    uPlotLoaded().then((uPlot) => {
      if (isGone) return;
      plot.current = new uPlot(optionsOf(uPlot, element, lines, format, axis, isUtc), data, element);
      observer.observe(element);
    });
    return () => {
      isGone = true;
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => plot.current?.setData(data), [times, lines]);

  const empty = times.length < 2 && html`<p class="hint">The first points come within half a minute.</p>`;
  return html`<div class="canvas" ref=${frame} role="img" aria-label="${title} over time; the button above shows it as table">${empty}</div>`;
}

function sizeOf(element) {
  return { width: Math.max(120, element.clientWidth - 16), height: Math.max(60, element.clientHeight - 8) };
}

function optionsOf(uPlot, element, lines, format, axis, isUtc) {
  const ink = colorOf(element, "--muted");
  const grid = { stroke: colorOf(element, "--line"), width: 1 };
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const place = (seconds) => (isUtc ? uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC") : new Date(seconds * 1e3));
  return {
    ...sizeOf(element),
    tzDate: place,
    padding: [10, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    plugins: [reading(lines, format, isUtc)],
    scales: { y: { range: (_, least, most) => [Math.min(0, least ?? 0), most > 0 ? most * 1.1 : 1] } },
    axes: [
      { stroke: ink, font, grid: { show: false }, ticks: { show: false }, size: 22, gap: 2, space: 60, values: "{HH}:{mm}" },
      { stroke: ink, font, grid, ticks: { show: false }, size: 44, gap: 4, space: 34, values: (_, ticks) => ticks.map(axis) },
    ],
    series: [
      {},
      ...lines.map(({ label, color }, index) => ({
        label,
        stroke: colorOf(element, color),
        width: 1.75,
        fill: index === 0 && lines.length === 1 ? colorOf(element, "--accent-soft") : undefined,
        points: { show: false },
        spanGaps: false,
      })),
    ],
  };
}

/** The values under the pointer, as the tooltip of the plot. */
function reading(lines, format, isUtc) {
  return {
    hooks: {
      setCursor: (plot) => {
        const index = plot.cursor.idx;
        if (index === null || index === undefined) return;
        const at = new Date(plot.data[0][index] * 1000);
        const clock = isUtc ? `${at.toISOString().slice(11, 19)}Z` : at.toLocaleTimeString();
        plot.over.title = `${clock}\n${lines.map(({ label }, line) => `${label}: ${format(plot.data[line + 1][index] ?? null)}`).join("\n")}`;
      },
    },
  };
}

/** A canvas knows no CSS variables: ask an element what the variable comes to. */
function colorOf(element, variable) {
  const probe = document.createElement("span");
  probe.style.color = `var(${variable})`;
  element.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}
