// Lines of output by where they begin: an event of the log, and how many lines end in it before. As one number, they
// are in the order of the log.
import type { LogLine } from "./types";

// More lines than one event can have: it carries at most 32 KiB.
const LINES = 65_536;

export const idOf = (event: number, line: number) => event * LINES + line;
export const eventOf = (id: number) => Math.floor(id / LINES);

/** The address of a line whose number is not known. */
export const placeName = (id: number) => `E${eventOf(id)}.${id % LINES}`;

/** What the address of the page asks for: the number of a line, or its id. */
export function wantedLine(hash: string): { number: number } | { id: number } | null {
  const number = /^#L(\d+)$/.exec(hash);
  if (number) return { number: Number(number[1]) };
  const place = /^#E(\d+)\.(\d+)$/.exec(hash);
  return place ? { id: idOf(Number(place[1]), Number(place[2])) } : null;
}

/** The index of the first line with this id or a higher one. */
export function firstFrom(lines: LogLine[], id: number): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle]!.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}
