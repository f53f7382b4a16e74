// The events of a shared task. There is no stream without a login, so work that goes on is asked for by the clock; each
// time only what is new.
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { json } from "@/api/client";
import type { LiveEvent } from "@/live/stream";

export const AGAIN_MS = 5000;
const PAGE = 1000;
/** Of one go: the server counts the requests of an address. */
const MAX_PAGES = 20;

interface Read {
  events: LiveEvent[];
  /** There may be more. */
  more: boolean;
}

/** What is known, and what came after it. */
export async function readOn(path: string, known: LiveEvent[]): Promise<Read> {
  const events = known.slice();
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { events: next } = await json<{ events: LiveEvent[] }>(`${path}/events?after=${events.at(-1)?.id ?? 0}&limit=${PAGE}`);
    events.push(...next);
    if (next.length < PAGE) return { events, more: false };
  }
  return { events, more: true };
}

/** `status` of the task: when it changes, what came last is read. */
export function useSharedEvents(path: string, status: string | undefined) {
  const known = useRef<LiveEvent[]>([]);
  return useQuery({
    queryKey: ["shared", path, "events", status],
    queryFn: async () => {
      const read = await readOn(path, known.current);
      known.current = read.events;
      return read;
    },
    enabled: status !== undefined,
    placeholderData: (before) => before,
    refetchInterval: ({ state }) => (status === "in_progress" || state.data?.more ? AGAIN_MS : false),
  });
}
