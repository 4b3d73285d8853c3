/** A small line without axes: which way a number goes. The number itself stands beside it. */
import { html } from "../dom.js";

const FEWEST = 5;

/** @param {{values: (number | null)[], width?: number, height?: number}} props */
export function Spark({ values, width = 120, height = 32 }) {
  const known = values.filter((value) => value !== null && Number.isFinite(value));
  if (known.length < FEWEST) return null;
  const most = Math.max(...known);
  const least = Math.min(...known, 0);
  const x = (index) => (index / (values.length - 1)) * (width - 2) + 1;
  const y = (value) => height - 2 - ((value - least) / (most - least || 1)) * (height - 5);
  let line = "";
  values.forEach((value, index) => {
    if (value === null || !Number.isFinite(value)) return;
    const isFirst = index === 0 || values[index - 1] === null;
    line += `${isFirst ? "M" : "L"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  const area = `${line}L${x(values.length - 1).toFixed(1)} ${height}L${x(0).toFixed(1)} ${height}Z`;
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" width=${width} height=${height} preserveAspectRatio="none" aria-hidden="true">
    <path class="area" d=${area} /><path class="line" d=${line} /></svg>`;
}
