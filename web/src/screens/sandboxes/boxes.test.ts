import { describe, expect, it } from "vitest";
import type { SandboxInfo } from "@/api/e2b";
import { filterOf, isFiltered, matching, mergeBoxes, type Row } from "./boxes";

const info = (sandboxID: string, more: Partial<SandboxInfo> = {}): SandboxInfo => ({
  sandboxID,
  templateID: "base",
  startedAt: "2026-11-16T10:00:00Z",
  endAt: "2026-11-16T11:00:00Z",
  state: "running",
  cpuCount: 2,
  memoryMB: 1024,
  diskSizeMB: 1024,
  envdVersion: "1",
  ...more,
});
const row = (id: string, more: Partial<Row> = {}) =>
  ({ id, backend_id: id, status: "running", holder_kind: "user", created_at: "2026-11-16T09:00:00Z", ...more }) as Row;

describe("what runs and what the platform knows", () => {
  it("is one sandbox, newest first, called by the platform's id", () => {
    const boxes = mergeBoxes([info("ia"), info("ib", { metadata: { use: "x", caisson_row: "y" } })], [
      row("old", { backend_id: "ia", holder_kind: "task", holder_id: "t1" }),
    ]);
    expect(boxes.map((box) => [box.id, box.backendId, box.owner.kind])).toEqual([
      ["ib", "ib", "user"],
      ["old", "ia", "task"],
    ]);
    expect(boxes[0]!.metadata).toEqual({ use: "x" });
  });
  it("takes the platform's word while it changes something, else the engine's", () => {
    const [one] = mergeBoxes([info("ia")], [row("ia", { status: "pausing" })]);
    expect(one!.status).toBe("pausing");
    const [two] = mergeBoxes([info("ia", { state: "paused" })], [row("ia", { status: "running" })]);
    expect(two!.status).toBe("paused");
  });
  it("tells why one has ended in words", () => {
    const [one] = mergeBoxes([], [row("ia", { status: "terminated", last_error: "timeout" })]);
    expect(one!.reason).toBe("its time was over");
  });
});

describe("filters", () => {
  const boxes = mergeBoxes([info("ia"), info("ib", { state: "paused", alias: "node", metadata: { use: "Demo" } })], [
    row("ic", { status: "terminated" }),
  ]);
  const ids = (search: Record<string, string>) => matching(boxes, filterOf(search)).map((box) => box.id);
  it("leave out what has ended unless it is asked for", () => {
    expect(ids({})).toEqual(["ia", "ib"]);
    expect(ids({ state: "ended" })).toEqual(["ic"]);
    expect(ids({ state: "ended,paused" })).toEqual(["ib", "ic"]);
  });
  it("find words anywhere", () => {
    expect(ids({ q: "demo" })).toEqual(["ib"]);
    expect(ids({ q: "demo ia" })).toEqual([]);
    expect(ids({ template: "node" })).toEqual(["ib"]);
    expect(isFiltered(filterOf({}))).toBe(false);
  });
});
