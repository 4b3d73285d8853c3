/**
 * Reads the worker's answers about one connector. Pages use what these functions give, so that the shape of an
 * answer is known in one place.
 */

/**
 * @param {any} answer of `connector`
 * @param {any} [row] of the overview, fresher in what it has
 */
export function factsOf(answer, row) {
  const progress = answer.progress ?? {};
  const status = answer.status ?? {};
  const tasks = status.tasks ?? answer.tasks ?? [];
  return {
    name: answer.name ?? status.name ?? row?.name,
    state: row?.state ?? status.connector?.state ?? answer.state ?? "UNASSIGNED",
    health: row?.health ?? answer.health ?? "unassigned",
    reason: answer.reason ?? row?.reason ?? null,
    type: answer.type ?? status.type ?? row?.type ?? "",
    class: answer.class ?? row?.class ?? "",
    version: answer.version ?? status.connector?.version ?? "",
    worker: status.connector?.worker_id ?? answer.worker ?? row?.worker ?? "",
    since: answer.since_ms ?? null,
    tasks,
    trace: answer.trace ?? null,
    traceAt: answer.trace_at_ms ?? null,
    restart: answer.restart ?? null,
    topics: answer.topics ?? progress.topics ?? row?.topics ?? [],
    tables: answer.tables ?? row?.tables ?? [],
    warnings: answer.warnings ?? progress.warnings ?? [],
    partitions: (answer.partitions ?? progress.partitions ?? []).map(partitionOf),
    lag: row?.lag ?? progress.lag ?? null,
    rate: row?.rate ?? answer.rate ?? null,
    fresh: row?.fresh_ms ?? answer.fresh_ms ?? null,
    lastCommit: row?.last_commit_ms ?? progress.last_commit_ms ?? null,
    nextCommitIn: progress.next_commit_in_ms ?? null,
    waitsFor: progress.waits_for ?? "",
    circuit: progress.circuit ?? null,
    maintenance: progress.maintenance ?? [],
    books: booksOf(progress),
    age: row?.age_ms ?? 0,
  };
}

function partitionOf(one) {
  const next = BigInt(one.next_offset ?? 0);
  const end = BigInt(one.end ?? 0);
  const lag = end > next ? Number(end - next) : 0;
  return { topic: one.topic, partition: one.partition, next: String(next), end: String(end), lag, newest: one.newest_ms ?? null };
}

/** What was read is what was written, rejected or filtered. */
function booksOf({ rows = 0, rejected = 0, filtered = 0 }) {
  return { read: rows + rejected + filtered, written: rows, rejected, filtered };
}

/**
 * The batches that landed and do not add up: there should never be one.
 * @param {ReturnType<typeof batchesOf>} batches
 */
export function unbalanced(batches) {
  return batches.filter((batch) => batch.outcome === "committed" && batch.read !== batch.written + batch.rejected + batch.filtered);
}

/** @param {any} answer of `batches` */
export function batchesOf(answer) {
  return (answer.batches ?? answer ?? []).map((one) => ({
    ...one,
    targets: (one.targets ?? one.tables ?? []).map(targetOf),
    rejected: sumOf(one.rejected),
    filtered: sumOf(one.filtered),
    filteredBy: typeof one.filtered === "object" ? one.filtered : {},
    rejectedBy: typeof one.rejected === "object" ? one.rejected : {},
    stages: one.stages ?? {},
    note: one.note ?? "",
  }));
}

function targetOf(one) {
  const sizes = one.file_bytes;
  return {
    name: one.name,
    id: one.id ?? one.snapshot ?? "",
    rows: one.rows ?? 0,
    files: one.files ?? sizes?.length ?? 0,
    bytes: one.bytes ?? (sizes ? sizes.reduce((sum, size) => sum + size, 0) : null),
    outcome: one.outcome,
  };
}

function sumOf(value) {
  if (value === null || value === undefined) return 0;
  return typeof value === "object" ? Object.values(value).reduce((sum, part) => sum + part, 0) : value;
}

/** @param {any} answer of `history` @returns {{times: number[], series: Record<string, (number | null)[]>}} in seconds */
export function historyOf(answer) {
  const series = { ...answer.series };
  // The youngest point of what is counted still grows: it would look like a drop.
  for (const counted of ["in", "out", "rejected"]) if (series[counted]) series[counted] = [...series[counted].slice(0, -1), null];
  // A young history fills the plot: what is before it is no gap.
  const first = answer.times.findIndex((_, index) => Object.values(series).some((values) => values[index] !== null));
  const from = first < 0 ? answer.times.length : first;
  for (const name of Object.keys(series)) series[name] = series[name].slice(from);
  return { times: answer.times.slice(from).map((ms) => ms / 1000), series };
}
