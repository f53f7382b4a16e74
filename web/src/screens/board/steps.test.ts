import { expect, it } from "vitest";
import { afterStep } from "./steps";

const event = (step: string, state: string) => ({ id: 1, type: "execution_step", timestamp: "2026-01-01T00:00:05Z", step, state, attempt: 1 });

it("follows the events of the steps", () => {
  const begun = { id: "e", startedAt: null, steps: [] };
  const running = afterStep(begun, event("clone", "running"));
  expect(running.steps).toMatchObject([{ name: "clone", state: "running", finished_at: null }]);
  const next = afterStep(afterStep(running, event("clone", "done")), event("branch", "running"));
  expect(next.steps.map((step) => `${step.name} ${step.state}`)).toEqual(["clone done", "branch running"]);
  expect(next.steps[0]?.finished_at).toBe("2026-01-01T00:00:05Z");
});
