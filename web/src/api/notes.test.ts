import { expect, it } from "vitest";
import { noteCall, noteEvent, percentile, useNotes } from "./notes";

it("keeps the newest calls and events, and counts all", () => {
  for (let ms = 1; ms <= 60; ms += 1) noteCall({ method: "GET", path: "/a", status: 200, ms });
  for (let id = 1; id <= 60; id += 1) noteEvent({ id, type: "log", timestamp: "" });
  const { calls, events, eventCount } = useNotes.getState();
  expect([calls.length, calls[0]!.ms, events.length, events[0]!.id, eventCount]).toEqual([50, 60, 50, 60, 60]);
  expect([percentile(calls, 50), percentile(calls, 95), percentile([], 50)]).toEqual([36, 58, 0]);
});
