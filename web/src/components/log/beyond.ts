import { useEffect, useState } from "react";
import type { Beyond, StreamFilter } from "./types";

// Nobody wants an answer for every letter.
const PAUSE_MS = 250;

export interface FoundBeyond {
  places: number[];
  searching: boolean;
  /** There are more than these. */
  more: boolean;
  error: Error | null;
  /** What was searched for, and where. */
  name: string;
}

const NOTHING: FoundBeyond = { places: [], searching: false, more: false, error: null, name: "" };
const NOTHING_YET: FoundBeyond = { ...NOTHING, searching: true };

export const isWhole = (beyond: Beyond | undefined) => !beyond || (beyond.from === 0 && beyond.until === Number.POSITIVE_INFINITY);

/** Finds a text in a log of which only a part is loaded. */
export function useSearchBeyond(beyond: Beyond | undefined, text: string, stream: StreamFilter): FoundBeyond {
  const [found, setFound] = useState<FoundBeyond>(NOTHING);
  const wanted = isWhole(beyond) ? "" : text;
  const name = `${stream} ${wanted}`;
  const search = beyond?.search;
  useEffect(() => {
    setFound({ ...NOTHING_YET, name });
    if (!wanted || !search) return;
    const abort = new AbortController();
    const show = (change: Partial<FoundBeyond>) => !abort.signal.aborted && setFound((old) => ({ ...old, ...change }));
    const timer = setTimeout(
      () =>
        search(wanted, stream, (places) => show({ places }), abort.signal).then(
          (more) => show({ more, searching: false }),
          (error: Error) => show({ error, searching: false }),
        ),
      PAUSE_MS,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [wanted, stream, search, name]);
  // What was found of another text is of no use.
  if (!wanted) return NOTHING;
  return found.name === name ? found : NOTHING_YET;
}
