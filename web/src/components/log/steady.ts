import type { Virtualizer } from "@tanstack/react-virtual";
import { type RefObject, useLayoutEffect, useRef } from "react";
import { firstFrom } from "./places";
import type { LogLine } from "./types";

/** The line with this id. One that is gone was the end of the line before it, whose beginning was not loaded. */
function placeOf(lines: LogLine[], id: number): number {
  const index = firstFrom(lines, id);
  return lines[index]?.id === id ? index : index - 1;
}

/** Keeps the lines in sight where they are when others are put before them: with a new `version`. Not while the end
 * is followed: `hold` is false. */
export function useSteady(box: RefObject<HTMLElement | null>, virtual: Virtualizer<HTMLDivElement, Element>, rows: number[], lines: LogLine[], version: number, hold: boolean) {
  const anchor = useRef({ id: -1, top: 0 });
  const seen = useRef(version);
  useLayoutEffect(() => {
    if (!box.current) return;
    if (seen.current !== version) {
      seen.current = version;
      const line = hold && anchor.current.id >= 0 ? placeOf(lines, anchor.current.id) : -1;
      const place = line < 0 ? undefined : virtual.measurementsCache[rows.indexOf(line)];
      if (place) box.current.scrollTop = place.start - anchor.current.top;
    }
    const top = box.current.scrollTop;
    const first = virtual.getVirtualItems().find((item) => item.start >= top && (rows[item.index] ?? -1) >= 0);
    anchor.current = first ? { id: lines[rows[first.index]!]!.id, top: first.start - top } : { id: -1, top: 0 };
  });
}
