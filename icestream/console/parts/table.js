/**
 * A table of which only the rows near the window are in the page. The page itself scrolls; rows have one
 * height, opened ones another.
 */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../dom.js";
import { Icon } from "./icons.js";

const MOST_ROWS = 60;
const BEYOND = 8;

/**
 * @typedef {object} Column
 * @property {string} key what it sorts by
 * @property {any} title
 * @property {string} [class] of its cells; `number` for numbers
 * @property {boolean} [sortable]
 * @property {string} [width] in CSS's words
 * @property {(row: any) => any} cell
 */

/**
 * @param {object} props
 * @param {Column[]} props.columns
 * @param {any[]} props.rows all of them, sorted
 * @param {(row: any) => string} props.keyOf
 * @param {number} props.rowHeight of a closed row
 * @param {number} [props.openHeight] of what an opened row shows below
 * @param {Set<string>} [props.opened]
 * @param {(row: any) => any} [props.more] what an opened row shows
 * @param {(row: any) => string} [props.classOf]
 * @param {string} [props.current] the row that the keys are at
 * @param {{by: string, isDescending: boolean}} props.sort
 * @param {(by: string) => void} props.onSort
 * @param {string} props.label
 */
export function VirtualTable({ columns, rows, keyOf, rowHeight, openHeight = 0, opened = new Set(), more, classOf, current, sort, onSort, label }) {
  const body = useRef(null);
  const [view, setView] = useState({ top: 0, height: 900 });
  useLayoutEffect(() => {
    const look = () => {
      const top = body.current ? -body.current.getBoundingClientRect().top : 0;
      const height = innerHeight;
      setView((before) => (Math.abs(before.top - top) < rowHeight / 2 && before.height === height ? before : { top, height }));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [rowHeight]);

  const openIndexes = more ? rows.flatMap((row, index) => (opened.has(keyOf(row)) ? [index] : [])) : [];
  const offsetOf = (index) => index * rowHeight + openIndexes.filter((open) => open < index).length * openHeight;
  const total = offsetOf(rows.length);
  const { from, until } = shown(view, rows.length, offsetOf);

  useEffect(() => {
    const index = current === undefined ? -1 : rows.findIndex((row) => keyOf(row) === current);
    if (index >= 0) reveal(body.current, offsetOf(index), rowHeight);
  }, [current]);

  const gap = (height) => height > 0 && html`<tr class="gap" aria-hidden="true" style=${{ height: `${height}px` }}><td colspan=${columns.length}></td></tr>`;
  return html`<table class="virtual" aria-label=${label} aria-rowcount=${rows.length + 1}>
    <colgroup>${columns.map((column) => html`<col class=${column.class} style=${column.width ? { width: column.width } : {}} />`)}</colgroup>
    <thead><tr aria-rowindex="1">${columns.map((column) => html`<${HeadCell} key=${column.key} column=${column} sort=${sort} onSort=${onSort} />`)}</tr></thead>
    <tbody ref=${body}>
      ${gap(offsetOf(from))}
      ${rows.slice(from, until).map((row, index) => {
        const key = keyOf(row);
        const isOpen = opened.has(key);
        return [
          html`<tr key=${`r${key}`} class="entry ${classOf?.(row) ?? ""}" aria-rowindex=${from + index + 2} aria-current=${key === current ? "true" : undefined}
            style=${{ height: `${rowHeight}px` }}>${columns.map((column) => html`<td key=${column.key} class=${column.class}>${column.cell(row)}</td>`)}</tr>`,
          isOpen && more && html`<tr key=${`m${key}`} class="more" style=${{ height: `${openHeight}px` }}><td colspan=${columns.length}>
            <div class="more-frame" style=${{ height: `${openHeight}px` }}>${more(row)}</div></td></tr>`,
        ];
      })}
      ${gap(total - offsetOf(until))}
    </tbody>
  </table>`;
}

/** Which rows the window shows, and a few more. */
function shown({ top, height }, length, offsetOf) {
  let from = 0;
  let beyond = length;
  while (from < beyond) {
    const middle = (from + beyond) >> 1;
    if (offsetOf(middle + 1) <= top) from = middle + 1;
    else beyond = middle;
  }
  let until = from;
  while (until < length && until - from < MOST_ROWS && offsetOf(until) < top + height) until += 1;
  const spare = Math.max(0, Math.min(BEYOND, Math.floor((MOST_ROWS - (until - from)) / 2)));
  return { from: Math.max(0, from - spare), until: Math.min(length, until + spare) };
}

/** Scroll as little as brings the row into the window, below the head of the table. */
function reveal(body, offset, rowHeight) {
  const top = body.getBoundingClientRect().top + offset;
  const headHeight = 48;
  if (top < headHeight) scrollBy(0, top - headHeight - 8);
  else if (top + rowHeight > innerHeight - 80) scrollBy(0, top + rowHeight - innerHeight + 88);
}

function HeadCell({ column, sort, onSort }) {
  if (column.sortable === false) return html`<th scope="col" class=${column.class}>${column.title}</th>`;
  const is = sort.by === column.key;
  return html`<th scope="col" class=${column.class} aria-sort=${is ? (sort.isDescending ? "descending" : "ascending") : undefined}>
    <button class="sort" type="button" onClick=${() => onSort(column.key)}>${column.title}${is && html`<${Icon} name=${sort.isDescending ? "down" : "up"} size=${12} />`}</button></th>`;
}

/**
 * A table with all its rows in the page, for tens of them.
 * @param {{columns: {title: any, class?: string, cell: (row: any) => any}[], rows: any[], label: string, keyOf?: (row: any) => string}} props
 */
export function PlainTable({ columns, rows, label, keyOf }) {
  return html`<div class="table-frame" tabindex="0" role="region" aria-label=${label}><table class="plain">
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.class}>${column.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${keyOf?.(row)}>${columns.map((column) => html`<td class=${column.class}>${column.cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}
