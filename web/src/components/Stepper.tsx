import { Check } from "lucide-react";
import type { Schemas } from "@/api/client";
import { cx } from "@/ui/classes";
import { capitalized } from "@/ui/format";
import { lookOf } from "@/ui/status";
import { duration, useNow } from "@/ui/time";

export type ExecutionStep = NonNullable<Schemas["Execution"]["steps"]>[number];

const LABELS: Record<string, string> = {
  provision: "Sandbox",
  clone: "Clone",
  branch: "Branch",
  agent: "Work",
  commit: "Commit",
  push: "Push",
  pull_request: "PR",
};

/** How people call a step. */
export function stepLabel(name: string): string {
  return name === "finish" ? "Clean up" : (LABELS[name] ?? capitalized(name.replaceAll("_", " ")));
}

const COLOURS: Record<string, string> = {
  done: "bg-ok-soft text-ok",
  running: "bg-info-soft text-info",
  failed: "bg-bad-soft text-bad",
  waiting: "bg-warn-soft text-warn",
};

const BARS: Record<string, string> = {
  done: "bg-ok",
  running: "bg-info",
  failed: "bg-bad",
  waiting: "bg-warn",
};

/** The known steps in their order, those that did not begin yet included. Cleaning up shows only if it fails. */
function complete(steps: ExecutionStep[]): ExecutionStep[] {
  const missing = (name: string): ExecutionStep => ({
    name,
    state: "pending",
    attempt: 0,
    error: "",
    started_at: null,
    finished_at: null,
  });
  const known = Object.keys(LABELS).map((name) => steps.find((step) => step.name === name) ?? missing(name));
  const others = steps.filter((step) => !(step.name in LABELS) && (step.name !== "finish" || step.state === "failed"));
  return [...known, ...others];
}

function took(step: ExecutionStep, now: number): string {
  if (!step.started_at) return "";
  const end = step.finished_at ? Date.parse(step.finished_at) : now;
  return duration(end - Date.parse(step.started_at));
}

/** The steps of a task's work. `compact`: for a card of the board. `percent`: how far the running step says it is. */
export function Stepper({ steps, compact, percent }: { steps: ExecutionStep[]; compact?: boolean; percent?: number }) {
  const shown = complete(steps);
  return compact ? <CompactSteps steps={shown} /> : <FullSteps steps={shown} percent={percent} />;
}

function CompactSteps({ steps }: { steps: ExecutionStep[] }) {
  const at = steps.find((step) => step.state !== "done" && step.state !== "pending") ?? steps.find((step) => step.state !== "done");
  const text = at ? `${stepLabel(at.name)}: ${lookOf("step", at.state).label}` : "All steps done";
  return (
    <span role="img" aria-label={text} title={text} className="flex gap-0.5">
      {steps.map((step) => (
        <span key={step.name} className={cx("h-1 flex-1 rounded-full", BARS[step.state] ?? "bg-line")} />
      ))}
    </span>
  );
}

function FullSteps({ steps, percent }: { steps: ExecutionStep[]; percent?: number }) {
  const running = steps.some((step) => step.started_at && !step.finished_at);
  const now = useNow(running ? 1000 : 3_600_000);
  return (
    <ol aria-label="Steps" className="flex overflow-x-auto">
      {steps.map((step, index) => {
        const look = lookOf("step", step.state);
        const Icon = step.state === "done" ? Check : look.icon;
        const time = took(step, now);
        return (
          <li key={step.name} className="flex min-w-12 flex-1 flex-col items-center gap-0.5 text-center" title={step.error || undefined}>
            <span className="flex w-full items-center">
              <span aria-hidden className={cx("h-px flex-1", index === 0 ? "invisible" : "bg-line")} />
              <span className={cx("rounded-full p-1", COLOURS[step.state] ?? "bg-sunken text-muted")}>
                <Icon aria-hidden className={cx("size-3.5", look.spin && "animate-spin")} />
              </span>
              <span aria-hidden className={cx("h-px flex-1", index === steps.length - 1 ? "invisible" : "bg-line")} />
            </span>
            <span className={cx("text-xs whitespace-nowrap", step.state === "pending" ? "text-muted" : "font-medium")}>
              {stepLabel(step.name)}
              <span className="sr-only">: {look.label}</span>
            </span>
            <span className="h-4 text-[11px] whitespace-nowrap text-muted tabular-nums">
              {step.state === "running" && percent !== undefined ? `${percent} % · ${time}` : time}
              {step.attempt > 1 && <span className="text-warn"> · try {step.attempt}</span>}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
