import { expect, it } from "vitest";
import type { LiveEvent } from "@/live/stream";
import { barOf, segmentsOf, type Step } from "./timeline";

const step = { name: "clone", state: "done", attempt: 2, started_at: "2026-01-01T00:00:00Z", finished_at: "2026-01-01T00:00:10Z" } as Step;
const event = (second: number, state: string, attempt: number, name = "clone") =>
  ({ id: second, type: "execution_step", step: name, state, attempt, timestamp: `2026-01-01T00:00:0${second}Z` }) as LiveEvent;

it("has one segment for each attempt", () => {
  const segments = segmentsOf(step, [event(1, "running", 1), event(2, "running", 1, "other"), event(3, "ready", 1), event(5, "running", 2), event(9, "done", 2)]);
  expect(segments.map(({ attempt, state }) => [attempt, state])).toEqual([
    [1, "failed"],
    [2, "done"],
  ]);
  expect(segments[0]!.until! - segments[0]!.from).toBe(2000);
});

it("has one bar where no events tell more, and none for what did not begin", () => {
  expect(segmentsOf(step, [])).toHaveLength(1);
  expect(segmentsOf({ ...step, started_at: null }, [])).toEqual([]);
});

it("keeps every bar within the whole", () => {
  const span = { from: 0, length: 1000 };
  expect(barOf({ attempt: 1, from: 0, until: 1, state: "done" }, span, 0)).toEqual({ left: 0, width: 0.6 });
  expect(barOf({ attempt: 1, from: 500, until: null, state: "running" }, span, 2000)).toEqual({ left: 50, width: 50 });
});
