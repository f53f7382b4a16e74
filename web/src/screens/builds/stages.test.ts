import { expect, it } from "vitest";
import type { LiveEvent } from "@/live/stream";
import type { Build } from "./queries";
import { autofixOf, inWords, stagesOf } from "./stages";

const event = (type: string, fields: object) => ({ id: 1, type, timestamp: "", ...fields }) as LiveEvent;
const started = (stage: string) => event("build.stage.started", { stage });

it("shows where a build is", () => {
  const stages = stagesOf({ state: "deps" } as Build, [started("starting"), event("build.stage.completed", { stage: "starting", duration_ms: 1200 })]);
  expect(stages.map((stage) => stage.state)).toEqual(["done", "done", "done", "running", "pending", "pending"]);
  expect(stages[0]!.took).toBe(1200);
});

it("shows where a build failed", () => {
  const stages = stagesOf({ state: "failed" } as Build, [started("starting"), started("scaffold"), started("code")]);
  expect(stages.map((stage) => stage.state)).toEqual(["done", "done", "failed", "pending", "pending", "pending"]);
});

it("tells the attempt at mending only while it goes on", () => {
  const events = [event("build.autofix", { attempt: 1, max: 2 }), event("build.autofix", { attempt: 2, max: 2 })];
  expect(autofixOf({ state: "checks" } as Build, events)).toEqual({ attempt: 2, max: 2 });
  expect(autofixOf({ state: "ready" } as Build, events)).toBeNull();
});

it("says durations in words", () => {
  expect(inWords(0.61)).toBe("0.6 s");
  expect(inWords(263)).toBe("4 min 23 s");
});
