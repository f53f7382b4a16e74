import { Suspense } from "react";
import { lazily } from "@/ui/lazily";
import { Skeleton } from "@/ui/states";

export interface Series {
  label: string;
  values: (number | null)[];
  tone: "accent" | "info" | "violet" | "warn" | "ok" | "bad";
}

export interface ChartProps {
  label: string;
  /** Unix seconds. */
  x: number[];
  series: Series[];
  kind?: "line" | "bars";
  format: (value: number) => string;
  /** What the lines of the grid may be apart; decimal steps if not said. */
  steps?: number[];
  /** A horizontal line: a limit, a budget. */
  limit?: number;
  height?: number;
  /** Unix seconds of the left and the right edge; else as far as there are values. */
  range?: [number, number];
  /** Times that are shaded: a pause. */
  shaded?: [number, number][];
}

const Plot = lazily(() => import("./chart/Plot"));

/** What a chart shows, for those who do not see it. */
function spoken({ label, series, format }: ChartProps): string {
  const parts = series.map(({ label: name, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${name}: no values`;
    return `${name}: ${format(known[known.length - 1]!)} at the end, at most ${format(Math.max(...known))}`;
  });
  return `${label}. ${parts.join("; ")}.`;
}

/** Values over time. */
export function Chart(props: ChartProps) {
  const height = props.height ?? 160;
  return (
    <figure aria-label={props.label}>
      <p className="sr-only">{spoken(props)}</p>
      <div aria-hidden style={{ minHeight: height }}>
        <Suspense fallback={<Skeleton className="h-40" />}>
          <Plot {...props} height={height} />
        </Suspense>
      </div>
    </figure>
  );
}
