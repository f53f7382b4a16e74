import type { LiveEvent } from "@/live/stream";
import { stepLabel } from "@/components/Stepper";
import { StatusBadge } from "@/ui/status";
import { duration, exact } from "@/ui/time";
import { type Run, type Segment, segmentsOf, type Step } from "./timeline";

interface Row {
  step: Step;
  segment: Segment | null;
  /** The newest attempt at its step. */
  last: boolean;
}

const CELL = "px-4 py-2 align-top";

/** Every attempt at every step, one after the other. */
export function RunList({ run, events }: { run: Run; events: LiveEvent[] }) {
  const rows = (run.steps ?? []).flatMap((step): Row[] => {
    const segments = segmentsOf(step, events);
    if (segments.length === 0) return [{ step, segment: null, last: true }];
    return segments.map((segment, index) => ({ step, segment, last: index === segments.length - 1 }));
  });
  return (
    <table className="w-full text-left">
      <thead className="border-b border-line text-xs text-muted [&_th]:font-medium">
        <tr>
          <th className={CELL}>Step</th>
          <th className={CELL}>Attempt</th>
          <th className={CELL}>State</th>
          <th className={`${CELL} max-sm:hidden`}>Began</th>
          <th className={CELL}>Took</th>
          <th className={`${CELL} max-md:hidden`}>Error</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ step, segment, last }) => (
          <tr key={`${step.name} ${segment?.from ?? 0}`} className="border-b border-line">
            <td className={`${CELL} font-medium`}>{stepLabel(step.name)}</td>
            <td className={`${CELL} text-muted`}>{segment?.attempt ?? ""}</td>
            <td className={CELL}>
              <StatusBadge kind="step" state={last ? step.state : (segment?.state ?? "pending")} />
            </td>
            <td className={`${CELL} text-muted max-sm:hidden`}>{segment && exact(new Date(segment.from).toISOString())}</td>
            <td className={`${CELL} text-muted tabular-nums`}>{segment?.until ? duration(segment.until - segment.from) : ""}</td>
            <td className={`${CELL} text-bad max-md:hidden`}>{last ? step.error : ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
