// The steps of a run as bars: when each attempt began and ended, in parts of the whole time.
import type { Schemas } from "@/api/client";
import type { LiveEvent } from "@/live/stream";

export type Run = Schemas["Run"];
export type Step = Schemas["Step"];

export interface Segment {
  attempt: number;
  from: number;
  /** `null`: it goes on. */
  until: number | null;
  state: "done" | "failed" | "running" | "waiting" | "canceled";
}

const ENDINGS: Record<string, Segment["state"]> = { ready: "failed", done: "done", failed: "failed", waiting: "waiting", canceled: "canceled" };

/** The attempts at a step. Events tell each of them; without events (not every workflow tells its steps) there is one bar. */
export function segmentsOf(step: Step, events: LiveEvent[]): Segment[] {
  const segments: Segment[] = [];
  for (const event of events) {
    if (event.type !== "execution_step" || event.step !== step.name) continue;
    const time = Date.parse(event.timestamp);
    const last = segments.at(-1);
    if (event.state === "running") {
      if (last && last.until === null) Object.assign(last, { until: time, state: "failed" });
      segments.push({ attempt: Number(event.attempt), from: time, until: null, state: "running" });
    } else if (last && last.until === null) Object.assign(last, { until: time, state: ENDINGS[String(event.state)] ?? "done" });
  }
  if (segments.length > 0) return segments;
  if (!step.started_at) return [];
  const until = step.finished_at ? Date.parse(step.finished_at) : null;
  const state = until === null ? (step.state === "waiting" ? "waiting" : "running") : (ENDINGS[step.state] ?? "done");
  return [{ attempt: step.attempt, from: Date.parse(step.started_at), until, state }];
}

export interface Span {
  from: number;
  length: number;
}

/** The time the bars share. */
export function spanOf(run: Run, now: number): Span {
  const from = Date.parse(run.started_at ?? run.created_at);
  const ends = [run.finished_at, ...(run.steps ?? []).map((step) => step.finished_at)].flatMap((time) => (time ? [Date.parse(time)] : []));
  const until = run.finished_at ? Math.max(...ends) : now;
  return { from, length: Math.max(until - from, 1) };
}

/** Place and width of a bar, in percent. Even a short one can be seen. */
export function barOf(segment: Segment, span: Span, now: number): { left: number; width: number } {
  const left = Math.min(99, Math.max(0, ((segment.from - span.from) / span.length) * 100));
  const width = (((segment.until ?? now) - segment.from) / span.length) * 100;
  return { left, width: Math.min(100 - left, Math.max(0.6, width)) };
}

export const isOver = (run: Run) => ["succeeded", "failed", "canceled", "dead"].includes(run.state);
export const canRetry = (run: Run) => run.state === "failed" || run.state === "dead" || run.state === "waiting";

const CLASSES: Record<string, string> = {
  transient: "It may pass by itself.",
  persistent: "Something has to be repaired before a retry can succeed.",
  user_action: "It waits for you: answer, retry or cancel.",
  fatal: "It will fail again unless the task, or what it works with, is changed.",
};

export const meaningOf = (errorClass: string) => CLASSES[errorClass] ?? "";
