/** Sends dead letters back to their topics: first counted, then sent, each at most once. */
import { get, send } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { count, of, visible, visibleLine } from "../format.js";
import { Dialog } from "./dialog.js";
import { Note } from "./states.js";
import { say } from "./toast.js";

const LOOK_EVERY = 700;

/** @param {{connector: string, wanted: {where?: string, group?: string, title?: string}, onClose: () => void, onDone: () => void}} props */
export function ReplayDialog({ connector, wanted, onClose, onDone }) {
  const [toTopic, setToTopic] = useState("");
  const [skips, setSkips] = useState(false);
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [progress, setProgress] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const body = { where: wanted.where ?? "", group: wanted.group ?? "", to_topic: toTopic.trim(), skip_unsendable: skips };

  useEffect(() => {
    const gone = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setPlan(await send("POST", "letters/replay", { query: { connector }, body: { ...body, dry_run: true }, signal: gone.signal }));
        setProblem("");
      } catch (error) {
        if (!gone.signal.aborted) setProblem(error.message);
      }
    }, plan ? 500 : 0);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [JSON.stringify(body)]);

  const isOver = progress?.is_over;
  useEffect(() => {
    if (!progress || isOver) return undefined;
    const timer = setInterval(async () => {
      try {
        setProgress((await get("letters/replay", { connector })).replay ?? progress);
      } catch {
        // The next look may get through; the replay goes on without us.
      }
    }, LOOK_EVERY);
    return () => clearInterval(timer);
  }, [Boolean(progress), isOver]);
  useEffect(() => {
    if (!isOver) return;
    say(progress.problem ? `The replay ended: ${visibleLine(progress.problem)}` : `${of(progress.sent, "dead letter")} sent.`, progress.problem ? "bad" : "good");
    onDone();
  }, [isOver]);

  const begin = async () => {
    setProblem("");
    try {
      setProgress(await send("POST", "letters/replay", { query: { connector }, body: { ...body, dry_run: false } }));
    } catch (error) {
      setProblem(error.message);
    }
  };
  const footer = progress
    ? html`<button class="button primary" type="button" onClick=${onClose}>Close</button>`
    : html`<button class="button" type="button" onClick=${onClose}>Cancel</button>
        <button class="button primary" type="button" disabled=${!plan || plan.problem || !plan.count} onClick=${begin}>${plan?.count ? `Send ${of(plan.count, "dead letter")}` : "Send"}</button>`;
  return html`<${Dialog} title="Replay dead letters" onClose=${onClose} footer=${footer}>
    ${wanted.title && html`<p class="wrap-anywhere">${visible(wanted.title)}</p>`}
    ${!progress && html`<${Plan} plan=${plan} />
      <label class="stack small"><span>To another topic (empty: each to where it is from)</span><input type="text" autocomplete="off" spellcheck=${false} value=${toTopic} onInput=${(event) => setToTopic(event.target.value)} /></label>
      <label class="field"><input type="checkbox" checked=${skips} onChange=${(event) => setSkips(event.target.checked)} />Leave out those that cannot be sent</label>
      <${Note} tone="warn">Every reader of the topic gets them again, not only this connector. Their error headers are removed; each is sent at most once, and they stay in their queue.<//>`}
    ${progress && html`<${Progress} progress=${progress} />`}
    ${problem && html`<${Note} tone="bad" title="Not sent">${visible(problem)}<//>`}
  <//>`;
}

function Plan({ plan }) {
  if (!plan) return html`<p role="status" class="row"><span class="spin"></span>Counting…</p>`;
  const before = plan.sent_already ? `; ${count(plan.sent_already)} were sent before` : "";
  return html`<p role="status"><strong>${of(plan.count, "dead letter")}</strong> would be sent${plan.topics.length ? html` to ${plan.topics.map(visibleLine).join(", ")}` : ""}${before}.</p>
    ${plan.without_origin > 0 && html`<p class="small">${count(plan.without_origin)} do not say where they are from.</p>`}
    ${plan.without_value > 0 && html`<p class="small">${count(plan.without_value)} lack their value: it was too large for the queue.</p>`}
    ${plan.problem && html`<${Note} tone="bad">${visible(plan.problem)}<//>`}`;
}

function Progress({ progress }) {
  return html`<div class="stack"><progress max=${Math.max(1, progress.total)} value=${progress.sent} aria-label="Dead letters sent"></progress>
    <p role="status">${count(progress.sent)} of ${count(progress.total)} sent${progress.is_over ? "." : "…"}</p>
    ${progress.problem && html`<${Note} tone="bad">${visible(progress.problem)}<//>`}</div>`;
}
