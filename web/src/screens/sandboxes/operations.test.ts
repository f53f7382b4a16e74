import { expect, it } from "vitest";
import { OperationFolder } from "./operations";

const event = (id: number, operation: string, status: string, more = {}) =>
  ({ id, type: "git_operation", timestamp: `t${id}`, operation, status, ...more }) as never;

it("makes one row of the events of an operation", () => {
  const folder = new OperationFolder();
  folder.add(event(1, "clone", "started"));
  folder.add(event(2, "clone", "in_progress", { progress: 40 }));
  folder.add(event(3, "clone", "completed", { duration_ms: 900 }));
  folder.add(event(4, "push", "started"));
  folder.add(event(5, "push", "failed", { duration_ms: 20, message: "refused" }));
  folder.add(event(6, "push", "started"));
  expect(folder.state()).toEqual([
    { id: "1", name: "clone", state: "done", at: "t1", ms: 900 },
    { id: "4", name: "push", state: "failed", at: "t4", ms: 20, error: "refused" },
    { id: "6", name: "push", state: "running", at: "t6" },
  ]);
});
