// Samples of a sandbox as a chart needs them.
import type { SandboxMetric } from "@/api/e2b";

type Sample = { timestampUnix: number; cpuUsedPct: number | null; memUsed: number | null; diskUsed: number | null };

/** Longer than this without a sample may be a hole: it was paused, or nobody measured. */
const HOLE_S = 60;

/** A line is not drawn over a hole. Further back there is one value for some minutes only: a hole is longer than the steps beside it. */
export function withGaps(metrics: SandboxMetric[]): Sample[] {
  const step = (at: number) => (metrics[at] && metrics[at - 1] ? metrics[at].timestampUnix - metrics[at - 1]!.timestampUnix : 0);
  return metrics.flatMap((metric, at) => {
    const isHole = step(at) > Math.max(HOLE_S, 2 * step(at - 1), 2 * step(at + 1));
    return isHole ? [{ timestampUnix: metrics[at - 1]!.timestampUnix + 1, cpuUsedPct: null, memUsed: null, diskUsed: null }, metric] : [metric];
  });
}

/** From when to when it was paused, in Unix seconds; one that lasts goes until now. */
export function pausesOf(timeline: { type: string; at: string }[], now: number): [number, number][] {
  const pauses: [number, number][] = [];
  let from: number | null = null;
  for (const event of timeline) {
    const at = Date.parse(event.at) / 1000;
    if (event.type === "paused") from ??= at;
    else if (from !== null && (event.type === "resumed" || event.type === "killed")) {
      pauses.push([from, at]);
      from = null;
    }
  }
  if (from !== null) pauses.push([from, now]);
  return pauses;
}
