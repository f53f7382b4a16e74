// What of a log is shown, as a list of rows: a line by its index, a group's header by a negative number.
import type { LogGroup, LogLine, StreamFilter } from "./types";

export interface Rows {
  rows: number[];
  /** Lines of each group that the filter lets through. */
  counts: number[];
}

export const headerRow = (group: number) => -1 - group;
export const groupOf = (row: number) => -1 - row;

/** Lines without a group stay where they came: behind the group of the line before. */
export function buildRows(lines: LogLine[], groups: LogGroup[], open: (group: LogGroup) => boolean, stream: StreamFilter): Rows {
  const index = new Map(groups.map((group, at) => [group.id, at]));
  const inside: number[][] = groups.map(() => []);
  const behind: number[][] = [[], ...groups.map((): number[] => [])];
  let last = 0;
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!;
    const group = line.group === undefined ? undefined : index.get(line.group);
    if (group !== undefined) last = group + 1;
    if (stream !== "all" && line.stream !== stream) continue;
    (group === undefined ? behind[last]! : inside[group]!).push(at);
  }
  const rows: number[] = behind[0]!;
  groups.forEach((group, at) => {
    rows.push(headerRow(at));
    if (open(group)) for (const line of inside[at]!) rows.push(line);
    for (const line of behind[at + 1]!) rows.push(line);
  });
  return { rows, counts: inside.map((each) => each.length) };
}

/** The line of a group where its failure begins: the first on stderr, else its last. -1 if it has none. */
export function failureLine(lines: LogLine[], group: string): number {
  let last = -1;
  for (let at = 0; at < lines.length; at += 1) {
    if (lines[at]!.group !== group) continue;
    if (lines[at]!.stream === "stderr") return at;
    last = at;
  }
  return last;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** The text as it is read, without colours. */
export const plain = (text: string) => (text.includes("\u001b") ? text.replace(ESCAPES, "") : text);

/** How many of the first lines are the same in both. */
export function commonPrefix(before: LogLine[], after: LogLine[]): number {
  const end = Math.min(before.length, after.length);
  let at = 0;
  while (at < end && before[at] === after[at]) at += 1;
  return at;
}
