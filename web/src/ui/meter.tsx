import { cx } from "./classes";

const FULL = 0.9;

/** How much of something is used: a number with a thin bar under it. */
export function Meter({ label, used, total, text }: { label: string; used: number; total: number; text: string }) {
  const share = total > 0 ? Math.min(1, used / total) : 0;
  return (
    <span className="inline-flex w-16 flex-col gap-1" role="img" aria-label={`${label}: ${text}, ${Math.round(share * 100)} %`}>
      <span className="text-xs tabular-nums">{text}</span>
      <span className="h-1 overflow-hidden rounded-full bg-hover">
        <span
          className={cx("block h-full rounded-full", share >= FULL ? "bg-warn" : "bg-accent")}
          style={{ width: `${Math.max(share > 0 ? 2 : 0, share * 100)}%` }}
        />
      </span>
    </span>
  );
}
