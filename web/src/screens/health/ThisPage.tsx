import { percentile, useNotes } from "@/api/notes";
import { useConnection } from "@/live/store";
import { cx } from "@/ui/classes";
import { plural } from "@/ui/format";
import { clock, duration } from "@/ui/time";

const WORDS = { live: "live", connecting: "being connected", waiting: "lost, tried again soon", polling: "lost, asked for every 5 s", refused: "refused" };

/** What this page was told and has asked: the stream of events, and how long calls took. */
export function ThisPage() {
  const { calls, events, eventCount, connections } = useNotes();
  const connection = useConnection();
  const head = "px-4 pt-3 pb-1 text-[13px] font-semibold";
  const list = "max-h-64 overflow-y-auto px-4 pb-3 font-mono text-xs leading-5";
  return (
    <div className="grid lg:grid-cols-2">
      <section aria-label="Stream of events">
        <h3 className={head}>Stream of events</h3>
        <p className="px-4 pb-2 text-[13px] text-muted">
          The connection is {WORDS[connection.state]}. {plural(eventCount, "event")} in {plural(connections, "connection")} since the page was opened.
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <ol className={list} tabIndex={0} aria-label="Last events">
          {events.map((event) => (
            <li key={event.id} className="flex gap-3">
              <span className="w-14 shrink-0 text-right text-muted tabular-nums">{event.id}</span>
              <span className="min-w-0 flex-1 truncate">{event.type}</span>
              <time dateTime={event.timestamp} className="shrink-0 text-muted">
                {clock(event.timestamp)}
              </time>
            </li>
          ))}
        </ol>
      </section>
      <section aria-label="Calls to the server" className="border-line max-lg:border-t lg:border-l">
        <h3 className={head}>Calls to the server</h3>
        <p className="px-4 pb-2 text-[13px] text-muted tabular-nums">
          Last {plural(calls.length, "call")}: half within {duration(percentile(calls, 50))}, 95 % within {duration(percentile(calls, 95))}.
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <ol className={list} tabIndex={0} aria-label="Last calls">
          {calls.map((call) => (
            <li key={call.id} className="flex gap-3">
              <span className="w-12 shrink-0 text-muted">{call.method}</span>
              <span className="min-w-0 flex-1 truncate">{call.path}</span>
              <span className={cx("shrink-0", (call.status === 0 || call.status >= 400) && "font-semibold text-bad")}>{call.status || "no answer"}</span>
              <span className="w-14 shrink-0 text-right tabular-nums">{Math.round(call.ms)} ms</span>
            </li>
          ))}
        </ol>
      </section>
    </div>
  );
}
