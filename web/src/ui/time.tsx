import { useEffect, useState } from "react";

/** The time, again every `ms`. */
export function useNow(ms = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}

const DAY = 86_400_000;

/** "12 ms", "4.2 s", "3:07", "2 h 5 min", "3 d 4 h". */
export function duration(ms: number): string {
  if (ms < 95) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** "just now", "20 s ago", "3 min ago", "2 h 5 min ago", "3 d ago"; after a month the date. */
export function ago(then: string, now: number): string {
  const ms = now - Date.parse(then);
  if (ms < 5000) return "just now";
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s ago`;
  if (ms < 2 * DAY) return `${duration(ms).replace(/:\d\d$/, " min")} ago`;
  return ms < 30 * DAY ? `${Math.floor(ms / DAY)} d ago` : DATE.format(new Date(then));
}

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export const exact = (time: string) => EXACT.format(new Date(time));

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** "14:02:09". */
export const clock = (time: string) => CLOCK.format(new Date(time));

/** "3 min ago", with the exact time as its tip. */
export function Ago({ time }: { time: string | null | undefined }) {
  const now = useNow(10_000);
  if (!time) return null;
  return (
    <time dateTime={time} title={exact(time)} className="whitespace-nowrap">
      {ago(time, now)}
    </time>
  );
}

/** How long something took, or takes until now. */
export function Elapsed({ from, until }: { from: string; until?: string | null }) {
  const now = useNow(until ? 3_600_000 : 1000);
  return (
    <span className="tabular-nums whitespace-nowrap">
      {duration((until ? Date.parse(until) : now) - Date.parse(from))}
    </span>
  );
}
