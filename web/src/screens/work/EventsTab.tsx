import { Activity } from "lucide-react";
import { useMemo, useState } from "react";
import type { EventLog } from "@/live/event_log";
import { Button } from "@/ui/button";
import { SearchInput } from "@/ui/field";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { plural } from "@/ui/format";
import { clock, exact } from "@/ui/time";
import { useParam } from "@/ui/url";

const STEP = 100;

/** Every event as the server sent it, the newest first: for finding out what went wrong. */
export function EventsTab({ log }: { log: EventLog }) {
  const [filter = "", setFilter] = useParam("event");
  const [count, setCount] = useState(STEP);
  const found = useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    return wanted ? log.events.filter((event) => JSON.stringify(event).toLowerCase().includes(wanted)) : log.events;
  }, [log.events, filter]);
  const first = Math.max(0, found.length - count);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex shrink-0 items-center gap-2 border-b border-line px-3 py-1.5">
        <SearchInput label="Filter events" placeholder="Type or text" value={filter} onChange={(event) => setFilter(event.target.value)} className="min-w-0 max-w-60 flex-1" />
        <span className="text-xs text-muted tabular-nums">
          {filter ? `${found.length} of ${log.events.length}` : plural(log.events.length, "event")}
        </span>
      </div>
      {found.length === 0 && log.error ? (
        <ErrorState error={log.error} onRetry={log.retry} />
      ) : found.length === 0 && log.loading ? (
        <SkeletonRows />
      ) : found.length === 0 ? (
        <EmptyState
          icon={Activity}
          title={filter ? "No event matches" : "No event yet"}
          action={filter && <Button onClick={() => setFilter("")}>Clear the filter</Button>}
        />
      ) : (
        <ol
          aria-label="Events"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable
          tabIndex={0}
          className="min-h-0 flex-1 overflow-y-auto px-3 py-2 font-mono text-xs"
        >
          {found
            .slice(first)
            .reverse()
            .map((event) => (
              <li key={event.id} className="border-b border-line py-1">
                <details>
                  <summary className="leading-5">
                    <time dateTime={event.timestamp} title={exact(event.timestamp)} className="text-muted">
                      {clock(event.timestamp)}
                    </time>{" "}
                    {event.type}
                  </summary>
                  <pre className="overflow-x-auto rounded bg-sunken p-2 whitespace-pre-wrap">{JSON.stringify(event, null, 2)}</pre>
                </details>
              </li>
            ))}
          {first > 0 && (
            <li className="py-2 text-center">
              <Button small look="ghost" onClick={() => setCount(count + STEP)}>
                Load earlier ({first})
              </Button>
            </li>
          )}
        </ol>
      )}
    </div>
  );
}
