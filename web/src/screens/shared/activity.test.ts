import { expect, it } from "vitest";
import { entryOf } from "./activity";

const event = (type: string, fields: Record<string, unknown> = {}) => ({ id: 1, type, timestamp: "2026-01-01T00:00:00Z", ...fields });

it("tells what matters and leaves the rest out", () => {
  expect(entryOf(event("message", { message: "I look" }))?.text).toBe("I look");
  expect(entryOf(event("execution_step", { step: "clone", state: "done" }))?.text).toBe("The repository is cloned");
  expect(entryOf(event("execution_step", { step: "clone", state: "running" }))).toBeNull();
  expect(entryOf(event("execution_step", { step: "push", state: "failed", message: "refused" }))).toMatchObject({ kind: "failed", text: "push: refused" });
  expect(entryOf(event("command_output", { output: "x" }))).toBeNull();
  expect(entryOf(event("pr_created", { pr_number: 7, pr_url: "javascript:alert(1)" }))?.text).toBe("Pull request #7 was opened");
});
