import { describe, expect, it } from "vitest";
import type { LiveEvent } from "@/live/stream";
import { FeedFolder, shown, toolLine } from "./feed";

let id = 0;
const event = (type: string, fields: Record<string, unknown> = {}): LiveEvent => {
  id += 1;
  return { id, type, timestamp: "2026-11-16T00:00:00Z", execution_id: "e", ...fields };
};
const fold = (...events: LiveEvent[]) => {
  const folder = new FeedFolder();
  for (const each of events) folder.add(each);
  return folder.state();
};

describe("the feed", () => {
  it("has one entry for a step, however often it is told of", () => {
    const entries = fold(
      event("execution_step", { step: "clone", state: "running", attempt: 1 }),
      event("execution_step", { step: "clone", state: "running", attempt: 2 }),
      event("execution_step", { step: "clone", state: "done", attempt: 2 }),
    );
    expect(entries).toMatchObject([{ kind: "phase", step: "Clone", state: "done", attempt: 2 }]);
  });

  it("tells the plan of the built-in agent once, as far as it is, and its rest until it is over", () => {
    const step = { title: "Write it", files_to_modify: [] };
    const events = [
      event("agent.state", { state: "planning" }),
      event("gsd.phase.started", { phase: "planning" }),
      event("agent.thinking", { turn: 1 }),
      event("agent.plan", { steps: [{ ...step, status: "in_progress" }] }),
      event("agent.state", { state: "sleeping" }),
      event("agent.sleeping", { until: "2026-11-17T00:00:00Z" }),
      event("agent.plan", { steps: [{ ...step, status: "completed" }] }),
    ];
    const resting = shown(fold(...events), false);
    expect(resting).toMatchObject([
      { kind: "note", text: "Planning began." },
      { kind: "plan", steps: [{ title: "Write it", status: "completed" }] },
      { kind: "rest", until: "2026-11-17T00:00:00Z", over: false },
    ]);
    expect(fold(...events).filter((entry) => entry.kind === "note")).toHaveLength(3);
    expect(shown(fold(...events, event("agent.state", { state: "executing" })), false)[2]).toMatchObject({ kind: "rest", over: true });
  });

  it("folds calls of tools in a row, and shows each with details", () => {
    const entries = fold(
      event("agent_tool", { tool: "bash", input: { command: "ls\npwd" } }),
      event("file_changed", { path: "a.c", change: "added" }),
      event("message", { message: "Done" }),
      event("agent_tool", { tool: "bash", input: {} }),
    );
    expect(shown(entries, false).map((each) => each.kind)).toEqual(["tools", "message", "tools"]);
    expect(shown(entries, true)).toHaveLength(4);
    expect(toolLine({ id: 1, time: "", kind: "tool", tool: "bash", input: { command: "ls\npwd" } })).toBe("bash: ls");
  });

  it("leaves small notes to the details", () => {
    const entries = fold(event("sandbox_created"), event("execution_started"), event("command_output", { output: "x" }));
    expect(shown(entries, false).map((each) => each.kind)).toEqual(["note"]);
    expect(shown(entries, true)).toHaveLength(2);
  });
});
