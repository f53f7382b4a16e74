import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "@/shell/theme";
import { exact } from "@/ui/time";
import type { ChartProps } from "../Chart";

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** A dashed line at `limit`, and the shaded times. They are drawn under the series. */
function drawMarks(plot: uPlot, props: ChartProps) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = css("hover");
  for (const [from, to] of props.shaded ?? []) {
    const left = Math.max(bbox.left, plot.valToPos(from, "x", true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, "x", true));
    if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  if (props.limit !== undefined) {
    const y = plot.valToPos(props.limit, "y", true);
    ctx.strokeStyle = css("warn");
    ctx.setLineDash([6, 4]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.restore();
}

// Twenty-four hours, and the date where the day changes: spacing in seconds, the text, and where it changes.
const DAY = "\n{D} {MMM}";
const TIMES: uPlot.Axis.Values = [
  [86_400, "{D} {MMM}", null, null, null, null, null, null, 1],
  [60, "{HH}:{mm}", null, null, DAY, null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", null, null, DAY, null, null, null, 1],
];

const axis = (): uPlot.Axis => ({
  stroke: css("muted"),
  font: "11px ui-sans-serif, system-ui, sans-serif",
  grid: { stroke: css("line"), width: 1 },
  ticks: { show: false },
});

function options(props: ChartProps, width: number, onPoint: (index: number | null) => void): uPlot.Options {
  const highest = (max: number) => Math.max(max, props.limit ?? 0) * 1.1 || 1;
  return {
    width,
    height: props.height ?? 160,
    legend: { show: false },
    // Room for half of the last time.
    padding: [null, 28, null, null],
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: (_, min, max) => props.range ?? [min, max] },
      y: { range: (_, __, max) => [0, highest(max)] },
    },
    axes: [
      { ...axis(), size: 34, space: 80, values: TIMES },
      { ...axis(), size: 64, space: 36, incrs: props.steps, values: (_, ticks) => ticks.map(props.format) },
    ],
    series: [
      {},
      ...props.series.map((series): uPlot.Series => ({
        label: series.label,
        stroke: css(series.tone),
        // Bars of nothing are not seen.
        width: props.kind === "bars" ? 0 : 1.5,
        fill: props.kind === "bars" ? css(series.tone) : css(`${series.tone}-soft`),
        points: { show: false },
        ...(props.kind === "bars" && { paths: uPlot.paths.bars!({ size: [0.7, 48] }) }),
      })),
    ],
    hooks: {
      drawClear: [(plot) => drawMarks(plot, props)],
      setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)],
    },
  };
}

/** The drawing of a Chart. It is made anew when its shape or the theme changes, and only fed otherwise. */
export default function Plot(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const dark = useTheme((state) => state.dark);
  const [point, setPoint] = useState<number | null>(null);
  const data = [props.x, ...props.series.map((series) => series.values)] as uPlot.AlignedData;
  const shape = JSON.stringify([
    props.kind,
    props.limit,
    props.height,
    props.range,
    props.shaded,
    props.series.map((each) => [each.label, each.tone]),
  ]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` and `dark` stand for what is drawn
  useEffect(() => {
    const parent = box.current!;
    const made = new uPlot(options(latest.current, parent.clientWidth || 300, setPoint), data, parent);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height: made.height }));
    watch.observe(parent);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, dark]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` is made anew with every render
  useEffect(() => plot.current?.setData(data), [props.x, props.series]);

  const index = point ?? props.x.length - 1;
  const time = props.x[index];
  return (
    <>
      <div ref={box} />
      <div className="flex flex-wrap gap-x-4 px-4 text-xs text-muted">
        {props.series.map((series) => (
          <span key={series.label} className="inline-flex items-center gap-1.5">
            <span className="size-2 rounded-full" style={{ background: `var(--${series.tone})` }} />
            <span className="font-medium text-text tabular-nums">
              {series.values[index] == null ? "–" : props.format(series.values[index])}
            </span>
            {series.label}
          </span>
        ))}
        {time !== undefined && point !== null && <span className="ml-auto">{exact(new Date(time * 1000).toISOString())}</span>}
      </div>
    </>
  );
}
