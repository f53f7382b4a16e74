import { expect, it } from "vitest";
import type { SandboxMetric } from "@/api/e2b";
import { pausesOf, withGaps } from "./samples";

const sample = (timestampUnix: number) => ({ timestampUnix, cpuUsedPct: 1, memUsed: 2, diskUsed: 3 }) as SandboxMetric;

it("leaves a hole where nothing was measured", () => {
  expect(withGaps([sample(100), sample(105), sample(500)]).map((each) => each.cpuUsedPct)).toEqual([1, 1, null, 1]);
});

it("joins values that are far apart by their nature, and leaves a hole between them where there was one", () => {
  const drawn = (times: number[]) => withGaps(times.map(sample)).map((each) => (each.cpuUsedPct === null ? "hole" : each.timestampUnix));
  expect(drawn([0, 300, 600, 900, 1000, 1005])).toEqual([0, 300, 600, 900, 1000, 1005]);
  expect(drawn([0, 300, 600, 4200, 4500])).toEqual([0, 300, 600, "hole", 4200, 4500]);
});

it("finds the pauses, also one that lasts", () => {
  const at = (seconds: number) => new Date(seconds * 1000).toISOString();
  const events = [
    { type: "created", at: at(10) },
    { type: "paused", at: at(20) },
    { type: "resumed", at: at(30) },
    { type: "paused", at: at(40) },
  ];
  expect(pausesOf(events, 50)).toEqual([
    [20, 30],
    [40, 50],
  ]);
});
