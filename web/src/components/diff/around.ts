// Lines around the parts of a diff. They are not in the diff: they are read from the file, if that can be read.
import { useEffect, useMemo, useState } from "react";
import { computeNewLineNumber, type HunkData, textLinesToHunk } from "react-diff-view";
import { failed } from "@/ui/toast";

/** The text of a file as it is now. */
export type ReadFile = (path: string) => Promise<string>;

/** Lines that the diff leaves out: before a part, or behind the last one. */
export interface Gap {
  oldStart: number;
  newStart: number;
  /** Infinite behind the last part, until the file is there. */
  size: number;
  /** How many of them are shown: at its beginning and at its end. */
  top: number;
  bottom: number;
}

export const STEP = 20;

/** The gap before each part, and the one behind all. */
export function gapsOf(hunks: HunkData[], lines: string[] | null, shown: [number, number][]): Gap[] {
  let [oldStart, newStart] = [1, 1];
  const gap = (size: number, index: number) => ({ oldStart, newStart, size, top: shown[index]?.[0] ?? 0, bottom: shown[index]?.[1] ?? 0 });
  const gaps = hunks.map((hunk, index) => {
    const before = gap(hunk.newStart - newStart, index);
    oldStart = hunk.oldStart + hunk.oldLines;
    newStart = hunk.newStart + hunk.newLines;
    return before;
  });
  return [...gaps, gap(lines ? lines.length - newStart + 1 : Number.POSITIVE_INFINITY, hunks.length)];
}

export const hiddenIn = (gap: Gap) => gap.size - gap.top - gap.bottom;

/** The lines of a gap that are shown: above what is still left out, and below it. */
export function linesOf(gap: Gap, lines: string[] | null): { above: HunkData | null; below: HunkData | null } {
  const piece = (from: number, count: number) =>
    lines && count > 0
      ? textLinesToHunk(lines.slice(gap.newStart + from - 1, gap.newStart + from + count - 1), gap.oldStart + from, gap.newStart + from)
      : null;
  return { above: piece(0, gap.top), below: piece(gap.size - gap.bottom, gap.bottom) };
}

/** Whether the diff is one of this text: the file may have changed since it was made. */
export const fits = (hunks: HunkData[], lines: string[]) =>
  hunks.every((hunk) => hunk.changes.every((change) => change.type === "delete" || lines[computeNewLineNumber(change) - 1] === change.content));

const withoutLast = (text: string) => text.split("\n").slice(0, text.endsWith("\n") ? -1 : undefined);

/** `open` is there if the file can be read: it shows more lines of a gap. */
export function useAround(path: string, hunks: HunkData[], read: ReadFile | undefined) {
  const [lines, setLines] = useState<string[] | null>(null);
  const [shown, setShown] = useState<[number, number][]>([]);
  const [busy, setBusy] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another diff is the reason to forget them
  useEffect(() => {
    setLines(null);
    setShown([]);
  }, [hunks]);
  const gaps = useMemo(() => gapsOf(hunks, lines, shown).map((gap) => ({ ...gap, ...linesOf(gap, lines) })), [hunks, lines, shown]);
  const open = async (index: number, top: number, bottom: number) => {
    setBusy(true);
    try {
      const text = lines ?? withoutLast(await read!(path));
      if (!fits(hunks, text)) throw new Error("The file has changed since this diff was made.");
      setLines(text);
      const gap = gapsOf(hunks, text, shown)[index]!;
      const left = hiddenIn(gap);
      setShown((before) => Object.assign([...before], { [index]: [gap.top + Math.min(top, left), gap.bottom + Math.min(bottom, left)] }));
    } catch (error) {
      failed(`The lines of ${path} could not be read`, error);
    } finally {
      setBusy(false);
    }
  };
  return { gaps, busy, open: read && open };
}
