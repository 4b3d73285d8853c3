/** Where a batch spent its time: one bar, a piece for each stage. */
import { html } from "../dom.js";
import { span } from "../format.js";

export const STAGES = ["plan", "queue", "read", "convert", "transform", "stage", "commit", "publish"];
const INSIDE_TASKS = ["read", "convert", "transform", "stage"];
const DID_NOT_LAND = ["unavailable", "failed", "conflict", "unknown"];
const MEANS = {
  plan: "choosing what to read",
  queue: "waiting for Spark, apart from the longest task",
  read: "reading from the source",
  convert: "turning bytes into columns",
  transform: "transforms",
  stage: "writing files",
  commit: "making them visible in the target",
  publish: "dead letters, events and offsets to Kafka",
};

/**
 * The wall time of each stage. Those inside tasks are seconds summed over tasks: they share the longest task.
 * @param {{stages: Record<string, number>, longest_task?: number}} batch
 * @returns {[string, number][]}
 */
export function wallOf({ stages, longest_task: longest }) {
  const summed = INSIDE_TASKS.reduce((sum, stage) => sum + (stages[stage] ?? 0), 0);
  const scale = longest && summed > 0 ? longest / summed : 1;
  return STAGES.filter((stage) => stages[stage] > 0).map((stage) => [stage, stages[stage] * (INSIDE_TASKS.includes(stage) ? scale : 1)]);
}

/**
 * @param {{batch: any, longest: number}} props `longest` seconds fill the whole width
 */
export function StageBar({ batch, longest }) {
  const parts = wallOf(batch);
  const known = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  const whole = Math.max(batch.seconds ?? 0, known);
  const words = parts.map(([stage, seconds]) => `${stage} ${span(seconds * 1000)}`).join(", ");
  const isUnderWay = batch.outcome === "under-way";
  const failedAt = DID_NOT_LAND.includes(batch.outcome) ? parts.at(-1)?.[0] : undefined;
  return html`<div class="stages ${isUnderWay ? "is-under-way" : ""}" role="img" aria-label=${words || "no stage yet"} title=${`${words}\nread, convert, transform and stage are shares of the longest task`}
    style=${{ width: `${Math.max(2, Math.min(100, (whole / (longest || whole || 1)) * 100))}%` }}>
    ${parts.map(([stage, seconds]) => html`<span key=${stage} class=${stage === failedAt ? "is-bad" : `stage-${stage}`} style=${{ flex: `${(seconds / (whole || 1)).toFixed(4)} 1 0` }}></span>`)}
    ${whole > known * 1.02 && html`<span style=${{ flex: `${((whole - known) / whole).toFixed(4)} 1 0` }}></span>`}
  </div>`;
}

export function StageLegend() {
  return html`<div class="legend">${STAGES.map((stage) => html`<span key=${stage} title=${MEANS[stage]}><i class="stage-${stage}"></i>${stage}</span>`)}</div>`;
}
