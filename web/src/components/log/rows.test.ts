import { describe, expect, it } from "vitest";
import { hitsIn } from "./LineText";
import { buildRows, commonPrefix, failureLine, headerRow, plain } from "./rows";
import type { LogGroup, LogLine } from "./types";

const line = (id: number, group?: string, stream: LogLine["stream"] = "stdout"): LogLine => ({ id, time: "", stream, text: `line ${id}`, group });
const groups: LogGroup[] = [
  { id: "a", title: "A", state: "done" },
  { id: "b", title: "B", state: "failed" },
];

describe("rows of a log", () => {
  const lines = [line(0), line(1, "a"), line(2, "b"), line(3, "a", "stderr"), line(4)];

  it("has the lines of open groups below their headers, and others where they came", () => {
    const { rows, counts } = buildRows(lines, groups, () => true, "all");
    expect(rows).toEqual([0, headerRow(0), 1, 3, 4, headerRow(1), 2]);
    expect(counts).toEqual([2, 1]);
  });

  it("leaves out what is folded or filtered, but counts it", () => {
    const { rows, counts } = buildRows(lines, groups, (group) => group.id === "b", "stdout");
    expect(rows).toEqual([0, headerRow(0), 4, headerRow(1), 2]);
    expect(counts).toEqual([1, 1]);
  });

  it("finds where a failure begins", () => {
    expect(failureLine(lines, "a")).toBe(3);
    expect(failureLine(lines, "b")).toBe(2);
    expect(failureLine(lines, "c")).toBe(-1);
  });

  it("knows how much of a log is unchanged", () => {
    expect(commonPrefix(lines, [...lines.slice(0, 3), line(9)])).toBe(3);
  });
});

describe("texts", () => {
  it("are searched as they are read", () => {
    expect(plain("\u001b[1;31mred\u001b[0m \u001b]0;title\u0007x")).toBe("red x");
    expect(hitsIn("Error and error", "error")).toEqual([[0, 5], [10, 15]]);
    expect(hitsIn("anything", "")).toEqual([]);
  });
});
