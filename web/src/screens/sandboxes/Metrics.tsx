import { useQuery } from "@tanstack/react-query";
import { ChartLine } from "lucide-react";
import { Chart } from "@/components/Chart";
import { Chip } from "@/ui/chip";
import { bytes, plural } from "@/ui/format";
import { Card } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { exact } from "@/ui/time";
import { metricsQuery, timelineQuery } from "./queries";
import { pausesOf, withGaps } from "./samples";

const RANGES = { "5m": ["5 minutes", 300], "1h": ["1 hour", 3600], "24h": ["24 hours", 86_400] } as const;
export type Range = keyof typeof RANGES;

/** A limit that is far away would press the line to the ground: it is drawn only when it comes near. */
const near = (limit: number, values: (number | null)[]) => (Math.max(...values.map((value) => value ?? 0)) > limit / 4 ? limit : undefined);

const BYTE_STEPS = Array.from({ length: 48 }, (_, power) => 2 ** power);
const percent = (value: number) => `${Math.round(value)} %`;

/** CPU, memory and disk over time; pauses are shaded. */
export function Metrics({ id, backendId, range, onRange }: {
  id: string;
  backendId: string;
  range: Range;
  onRange: (range: Range) => void;
}) {
  const seconds = RANGES[range][1];
  const metrics = useQuery(metricsQuery(backendId, seconds));
  const timeline = useQuery(timelineQuery(id)).data ?? [];
  const samples = withGaps(metrics.data ?? []);
  const now = Math.ceil(Date.now() / 5000) * 5;
  const first = metrics.data?.[0];
  // A young sandbox fills the whole width, too.
  const from = Math.max(now - seconds, Math.min(first?.timestampUnix ?? 0, now - 30));
  const shared = {
    x: samples.map((sample) => sample.timestampUnix),
    range: [from, now] as [number, number],
    shaded: pausesOf(timeline, now),
    height: 170,
  };
  const memory = samples.map((sample) => sample.memUsed);
  const disk = samples.map((sample) => sample.diskUsed);
  const last = metrics.data?.[metrics.data.length - 1];
  return (
    <div className="p-4">
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <div role="group" aria-label="Time" className="flex gap-1">
          {(Object.keys(RANGES) as Range[]).map((each) => (
            <Chip key={each} on={each === range} onChange={() => onRange(each)}>
              {RANGES[each][0]}
            </Chip>
          ))}
        </div>
        {first && first.timestampUnix > now - seconds + 5 && (
          <span className="text-xs text-muted">Recorded since {exact(first.timestamp)}.</span>
        )}
      </div>
      {metrics.error ? (
        <ErrorState error={metrics.error} onRetry={() => void metrics.refetch()} />
      ) : !metrics.data ? (
        <SkeletonRows rows={3} height="h-40" />
      ) : !last ? (
        <EmptyState icon={ChartLine} title="Nothing was recorded in this time" />
      ) : (
        <div className="grid gap-4 xl:grid-cols-2">
          <Card title="CPU" className="pb-3 xl:col-span-2">
            <Chart {...shared} label="CPU" format={percent} limit={100} series={[{ label: `of ${plural(last.cpuCount, "CPU")}`, tone: "accent", values: samples.map((sample) => sample.cpuUsedPct) }]} />
          </Card>
          <Card title="Memory" className="pb-3">
            <Chart {...shared} label="Memory" format={bytes} steps={BYTE_STEPS} limit={near(last.memTotal, memory)} series={[{ label: `of ${bytes(last.memTotal)}`, tone: "info", values: memory }]} />
          </Card>
          <Card title="Disk" className="pb-3">
            <Chart {...shared} label="Disk" format={bytes} steps={BYTE_STEPS} limit={near(last.diskTotal, disk)} series={[{ label: `of ${bytes(last.diskTotal)}`, tone: "violet", values: disk }]} />
          </Card>
        </div>
      )}
    </div>
  );
}
