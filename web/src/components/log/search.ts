import { useEffect, useRef, useState } from "react";
import { commonPrefix, plain } from "./rows";
import type { LogLine, StreamFilter } from "./types";

// So many lines are looked at before the page gets its turn again.
const CHUNK = 5000;

export interface Found {
  /** Indexes of lines that have the text, */
  lines: number[];
  /** in this list: what is searched now may be another one already. */
  of: LogLine[];
  searching: boolean;
  /** What was searched for, and where. */
  name: string;
}

const NOTHING: Found = { lines: [], of: [], searching: false, name: "" };
const NOTHING_YET: Found = { ...NOTHING, searching: true };

/** Finds a text in all lines, folded ones too. Lines that come later are looked at as they come. */
export function useLogSearch(lines: LogLine[], text: string, stream: StreamFilter): Found {
  const [found, setFound] = useState<Found>(NOTHING);
  const state = useRef({ name: "", lines: [] as LogLine[], scanned: 0, hits: [] as number[] });
  const needle = text.toLowerCase();
  const name = `${stream} ${needle}`;
  useEffect(() => {
    const now = state.current;
    const kept = now.name === name ? Math.min(now.scanned, commonPrefix(now.lines, lines)) : 0;
    state.current = { name, lines, scanned: kept, hits: now.hits.filter((hit) => hit < kept) };
    if (!needle) return setFound(NOTHING);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const scan = () => {
      const { hits, scanned } = state.current;
      const end = Math.min(lines.length, scanned + CHUNK);
      for (let at = scanned; at < end; at += 1) {
        const line = lines[at]!;
        if (stream !== "all" && line.stream !== stream) continue;
        if (plain(line.text).toLowerCase().includes(needle)) hits.push(at);
      }
      state.current.scanned = end;
      setFound({ lines: hits.slice(), of: lines, searching: end < lines.length, name });
      if (end < lines.length) timer = setTimeout(scan);
    };
    scan();
    return () => clearTimeout(timer);
  }, [lines, needle, stream, name]);
  // What was found of another text is of no use.
  if (!needle) return NOTHING;
  return found.name === name ? found : NOTHING_YET;
}
