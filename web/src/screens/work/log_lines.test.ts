import { describe, expect, it } from "vitest";
import { idOf } from "@/components/log/places";
import type { LiveEvent } from "@/live/stream";
import { LogFolder } from "./log_lines";

let id = 0;
const event = (type: string, fields: Record<string, unknown>): LiveEvent => {
  id += 1;
  return { id, type, timestamp: "2026-11-16T00:00:00Z", execution_id: "e", ...fields };
};
const output = (text: string, stream = "stdout") => event("command_output", { output: text, stream });
const fold = (...events: LiveEvent[]) => {
  const folder = new LogFolder();
  for (const each of events) folder.add(each);
  return folder.state();
};

describe("lines of a log", () => {
  it("are joined from pieces, each stream for itself", () => {
    const { lines } = fold(output("one\ntw"), output("err", "stderr"), output("o\nthree"), output("or\n", "stderr"), output("\n"));
    expect(lines.map((line) => [line.stream, line.text])).toEqual([
      ["stdout", "one"],
      ["stdout", "two"],
      ["stderr", "error"],
      ["stdout", "three"],
    ]);
  });

  it("show what a carriage return leaves", () => {
    const { lines } = fold(output("10 %\r50 %\r"), output("100 %\r"), output("\nnext\r\n"));
    expect(lines.map((line) => line.text)).toEqual(["100 %", "next"]);
  });

  it("keep empty lines", () => {
    expect(fold(output("a\n\nb\n")).lines.map((line) => line.text)).toEqual(["a", "", "b"]);
  });

  it("belong to the step they were printed in", () => {
    const { lines, groups } = fold(
      event("execution_step", { step: "clone", state: "running", attempt: 1 }),
      event("git_operation", { operation: "clone", status: "started" }),
      event("execution_step", { step: "clone", state: "failed", attempt: 1, message: "no such repository" }),
    );
    expect(groups).toMatchObject([{ title: "Clone", state: "failed" }]);
    expect(lines.map((line) => [line.group, line.stream, line.text])).toEqual([
      ["e/clone", "system", "git clone"],
      ["e/clone", "stderr", "no such repository"],
    ]);
  });

  it("belong to answers, which are counted without the questions", () => {
    const answer = (message_id: string, seq: number, state: string) => event("session_message", { message_id, seq, state, role: "assistant" });
    const { groups } = fold(answer("m2", 2, "running"), answer("m2", 2, "done"), answer("m4", 4, "running"));
    expect(groups).toMatchObject([
      { title: "Answer 1", state: "done" },
      { title: "Answer 2", state: "running" },
    ]);
  });

  it("are named by the event they begin in", () => {
    id = 10;
    const { lines } = fold(output("one\ntw"), output("o\nthree\n"));
    expect(lines.map((line) => line.id)).toEqual([idOf(11, 0), idOf(11, 1), idOf(12, 1)]);
  });

  it("are only those of the part that is loaded, in the groups of all", () => {
    id = 0;
    const folder = new LogFolder(3, 4);
    const clone = event("execution_step", { step: "clone", state: "running", attempt: 1 });
    for (const each of [clone, event("log", { message: "early" }), output("one\n"), event("log", { message: "inside" }), event("log", { message: "late" })])
      folder.add(each);
    const { lines, groups, notes } = folder.state();
    expect(lines.map((line) => line.text)).toEqual(["one", "inside"]);
    expect(notes.map((line) => line.text)).toEqual(["early", "inside", "late"]);
    expect(groups.map((group) => group.title)).toEqual(["Clone", "Work"]);
  });

  it("say where output is missing", () => {
    const { lines } = fold(output("one\n"), event("log", { level: "warn", message: "dropped", cut_lines: 60, cut_bytes: 2400 }));
    expect(lines[1]).toMatchObject({ cut: true, stream: "system", text: "Output cut: 60 lines (2.3 KB) omitted. It came faster than it could be kept." });
  });
});
