// The stages of a build in plain words, with what events tell about them.
import type { LiveEvent } from "@/live/stream";
import type { Build } from "./queries";

export type StageState = "done" | "running" | "failed" | "pending";

export interface StageView {
  id: string;
  label: string;
  state: StageState;
  /** Milliseconds, of all rounds together. */
  took: number;
}

const STAGES = [
  { id: "starting", label: "Start" },
  { id: "scaffold", label: "Set up" },
  { id: "code", label: "Write code" },
  { id: "deps", label: "Install" },
  { id: "checks", label: "Check" },
];

export function stagesOf(build: Build, events: LiveEvent[]): StageView[] {
  const started = events.filter((event) => event.type === "build.stage.started").map((event) => String(event.stage));
  const failedAt = build.state === "failed" ? started.at(-1) : undefined;
  const at = STAGES.findIndex((stage) => stage.id === build.state);
  const stages = STAGES.map((stage, index): StageView => {
    const took = events
      .filter((event) => event.type === "build.stage.completed" && event.stage === stage.id)
      .reduce((sum, event) => sum + Number(event.duration_ms ?? 0), 0);
    const state: StageState =
      build.state === "ready"
        ? "done"
        : build.state === stage.id
          ? "running"
          : failedAt === stage.id
            ? "failed"
            : index < at || (build.state === "failed" && started.includes(stage.id))
              ? "done"
              : "pending";
    return { ...stage, state, took };
  });
  return [...stages, { id: "ready", label: "Ready", state: build.state === "ready" ? "done" : "pending", took: 0 }];
}

/** The attempt at mending that is under way. */
export function autofixOf(build: Build, events: LiveEvent[]): { attempt: number; max: number } | null {
  if (build.state === "ready" || build.state === "failed") return null;
  const last = events.filter((event) => event.type === "build.autofix").at(-1);
  return last ? { attempt: Number(last.attempt), max: Number(last.max) } : null;
}

/** "4 min 23 s". */
export function inWords(seconds: number): string {
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
