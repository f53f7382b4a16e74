import { useMemo, useRef } from "react";
import type { LiveEvent } from "@/live/stream";

/** Something that is made of events, one after the other. */
export interface Folder<State> {
  add(event: LiveEvent): void;
  /** What came of it so far: new lists, which do not change any more. */
  state(): State;
}

/** What `start` makes of a log that grows. Each event is taken once, so that a long log costs nothing again; with
 * another `version` it is made anew. */
export function useFold<State>(events: LiveEvent[], start: () => Folder<State>, version = 0): State {
  const kept = useRef<{ folder: Folder<State>; last: number; version: number } | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the folder is made once
  return useMemo(() => {
    if (kept.current?.version !== version) kept.current = { folder: start(), last: 0, version };
    const now = kept.current;
    let from = events.length;
    while (from > 0 && events[from - 1]!.id > now.last) from -= 1;
    for (let at = from; at < events.length; at += 1) now.folder.add(events[at]!);
    now.last = events.at(-1)?.id ?? now.last;
    return now.folder.state();
  }, [events, version]);
}

export const textOf = (value: unknown) => (typeof value === "string" ? value : "");
export const numberOf = (value: unknown) => (typeof value === "number" ? value : 0);
