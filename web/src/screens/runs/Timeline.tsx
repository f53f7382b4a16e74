import { stepLabel } from "@/components/Stepper";
import { cx } from "@/ui/classes";
import { plural } from "@/ui/format";
import { lookOf } from "@/ui/status";
import { duration, useNow } from "@/ui/time";
import type { LiveEvent } from "@/live/stream";
import { barOf, isOver, type Run, type Segment, segmentsOf, spanOf, type Step } from "./timeline";

const BARS: Record<Segment["state"], string> = {
  done: "bg-ok/75",
  failed: "bg-bad/80",
  running: "bg-info/80",
  waiting: "bg-warn/70",
  canceled: "bg-line-strong/70",
};

const lengthOf = (segments: Segment[], now: number) => segments.reduce((sum, each) => sum + (each.until ?? now) - each.from, 0);

/** One line for each step, one bar for each attempt at it. */
export function Timeline({ run, events, chosen, onChoose }: {
  run: Run;
  events: LiveEvent[];
  chosen?: string;
  onChoose: (step: string) => void;
}) {
  const now = useNow(isOver(run) ? 3_600_000 : 1000);
  const span = spanOf(run, now);
  const lines = (run.steps ?? []).map((step) => ({ step, segments: segmentsOf(step, events) }));
  const retried = lines.some(({ segments }) => segments.length > 1);
  return (
    <div className="px-2 py-2">
      <ol aria-label="Steps">
        {lines.map(({ step, segments }) => (
          <Row key={step.name} step={step} segments={segments} retried={retried} chosen={chosen === step.name} onChoose={() => onChoose(step.name)} span={span} now={now} />
        ))}
      </ol>
      <div className={cx("mt-1 flex justify-between border-t border-line pt-1 pl-[14.5rem] text-xs text-muted tabular-nums max-sm:px-2", retried ? "pr-24" : "pr-2")} aria-hidden>
        <span>0</span>
        <span>{duration(span.length / 2)}</span>
        <span>{duration(span.length)}</span>
      </div>
    </div>
  );
}

function Row({ step, segments, retried, chosen, onChoose, span, now }: {
  step: Step;
  segments: Segment[];
  /** Some step was tried more than once: every line has room for the number. */
  retried: boolean;
  chosen: boolean;
  onChoose: () => void;
  span: { from: number; length: number };
  now: number;
}) {
  const look = lookOf("step", step.state);
  const took = segments.length > 0 ? duration(lengthOf(segments, now)) : "";
  return (
    <li className="max-sm:pb-2">
      <button
        type="button"
        aria-pressed={chosen}
        onClick={onChoose}
        className={cx("flex min-h-8 w-full items-center gap-2 rounded px-2 text-left hover:bg-hover max-sm:flex-wrap", chosen && "bg-accent-soft hover:bg-accent-soft")}
      >
        <look.icon aria-label={look.label} className={cx("size-4 shrink-0", TEXT[look.tone], look.spin && "animate-spin")} />
        <span className="w-32 shrink-0 truncate font-medium">{stepLabel(step.name)}</span>
        <span className="w-14 shrink-0 text-right text-xs text-muted tabular-nums">{took}</span>
        <span className="relative h-4 min-w-24 flex-1 rounded bg-sunken max-sm:basis-full">
          {segments.map((segment) => {
            const { left, width } = barOf(segment, span, now);
            return (
              <span
                key={segment.from}
                title={`Attempt ${segment.attempt}: ${segment.state}, ${duration((segment.until ?? now) - segment.from)}`}
                data-attempt={segment.attempt}
                className={cx("absolute inset-y-0 rounded-sm", BARS[segment.state])}
                style={{ left: `${left}%`, width: `${width}%` }}
              />
            );
          })}
        </span>
        {retried && <span className="w-20 shrink-0 text-xs text-muted">{segments.length > 1 ? plural(segments.length, "attempt") : ""}</span>}
      </button>
    </li>
  );
}

const TEXT: Record<string, string> = { ok: "text-ok", bad: "text-bad", warn: "text-warn", info: "text-info", neutral: "text-muted" };
