import { cx } from "@/ui/classes";
import { duration, exact, useNow } from "@/ui/time";

const SOON_MS = 5 * 60_000;

/** How long a running sandbox has still to live; marked when that is not long. */
export function TimeLeft({ endAt }: { endAt: string }) {
  const left = Date.parse(endAt) - useNow();
  return (
    <time dateTime={endAt} title={`Ends ${exact(endAt)}`} className={cx("whitespace-nowrap tabular-nums", left < SOON_MS && "font-medium text-warn")}>
      {left <= 0 ? "ending" : duration(left)}
    </time>
  );
}
