/** Small signs, drawn as strokes in the colour of their text. Words stand beside them: they are for eyes only. */
import { html } from "../dom.js";

const PATHS = {
  failed: "M5 5l6 6M11 5l-6 6",
  unassigned: "M8 5.2v3.6M8 11.2v.1",
  waiting: "M8 4.6V8l2.3 1.6",
  late: "M8 4.4v4.4M8 11.3v.1",
  behind: "M5 9.2L8 6l3 3.2",
  rejecting: "M4.8 8h6.4",
  paused: "M6.3 5.5v5M9.7 5.5v5",
  stopped: "M5.9 5.9h4.2v4.2H5.9z",
  ok: "M5 8.2l2.1 2.1L11 6.2",
};
const SHAPES = {
  search: ["M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9z", "M10.4 10.4L14 14"],
  sun: ["M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6z", "M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9"],
  moon: ["M13.2 9.8A5.6 5.6 0 0 1 6.2 2.8a5.6 5.6 0 1 0 7 7z"],
  system: ["M2 3h12v8H2z", "M5.5 13.5h5M8 11v2.5"],
  help: ["M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13z", "M6.2 6.2a1.8 1.8 0 1 1 2.6 1.6c-.5.3-.8.6-.8 1.2M8 11.4v.1"],
  plus: ["M8 3.5v9M3.5 8h9"],
  pause: ["M5.5 3.5v9M10.5 3.5v9"],
  play: ["M5 3.2l7.5 4.8L5 12.8z"],
  stop: ["M4 4h8v8H4z"],
  restart: ["M13 8a5 5 0 1 1-1.6-3.7", "M13.2 2.2v2.9h-2.9"],
  edit: ["M3 13l.6-2.7 7.2-7.2 2.1 2.1-7.2 7.2z"],
  trash: ["M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5"],
  close: ["M4 4l8 8M12 4l-8 8"],
  right: ["M6 3.5L10.5 8 6 12.5"],
  down: ["M3.5 6L8 10.5 12.5 6"],
  up: ["M3.5 10L8 5.5 12.5 10"],
  copy: ["M6 6h7v7H6z", "M10 6V3H3v7h3"],
  download: ["M8 2.5v8M4.8 7.5L8 10.7l3.2-3.2M3 13.5h10"],
  upload: ["M8 10.7v-8M4.8 5.7L8 2.5l3.2 3.2M3 13.5h10"],
  empty: ["M2.5 9.5L4 3.5h8l1.5 6v3.5h-11z", "M2.5 9.5h3.2l1 1.6h2.6l1-1.6h3.2"],
  warning: ["M8 2.2l6.2 11.3H1.8z", "M8 6.5v3.2M8 11.6v.1"],
  check: ["M3.5 8.4l3 3 6-6.4"],
  more: ["M3.5 8h.1M8 8h.1M12.5 8h.1"],
  table: ["M2.5 3.5h11v9h-11z", "M2.5 6.5h11M2.5 9.5h11M6.5 3.5v9"],
  chart: ["M2.5 2.5v11h11", "M5 10l2.5-3 2 1.8L13 5"],
};

/** @param {{name: string, size?: number}} props */
export function Icon({ name, size = 16 }) {
  const drawn = SHAPES[name] ?? [];
  return html`<svg viewBox="0 0 16 16" width=${size} height=${size} fill="none" stroke="currentColor" stroke-width="1.5"
    stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${drawn.map((d) => html`<path d=${d} />`)}</svg>`;
}

/** The sign of a health: a disc with a mark in it. @param {{health: string}} props */
export function HealthSign({ health }) {
  return html`<svg viewBox="0 0 16 16" fill="none" aria-hidden="true" stroke-linecap="round" stroke-linejoin="round" stroke-width="1.7">
    <circle cx="8" cy="8" r="6.6" stroke="currentColor" stroke-width="1.4" /><path d=${PATHS[health] ?? PATHS.unassigned} stroke="currentColor" />
  </svg>`;
}

/** The mark of the product. */
export function Mark() {
  return html`<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" fill="#0b5c97" />
    <path d="M6 12c3.3-3 6.7-3 10 0s6.7 3 10 0M6 19c3.3-3 6.7-3 10 0s6.7 3 10 0" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" /></svg>`;
}
