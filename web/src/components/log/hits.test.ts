import { describe, expect, it } from "vitest";
import { Hits } from "./hits";
import { eventOf, firstFrom, idOf, placeName, wantedLine } from "./places";
import type { LogLine } from "./types";

const line = (id: number): LogLine => ({ id, time: "", stream: "stdout", text: "" });

describe("places of lines", () => {
  it("are in the order of the log", () => {
    expect(idOf(7, 3)).toBeGreaterThan(idOf(7, 2));
    expect(idOf(8, 0)).toBeGreaterThan(idOf(7, 40_000));
    expect(eventOf(idOf(7, 40_000))).toBe(7);
    expect(Number.isSafeInteger(idOf(100_000_000_000, 0))).toBe(true);
  });

  it("have addresses", () => {
    expect(wantedLine(`#${placeName(idOf(12, 5))}`)).toEqual({ id: idOf(12, 5) });
    expect(wantedLine("#L44")).toEqual({ number: 44 });
    expect(wantedLine("#other")).toBeNull();
  });

  it("are found in lines", () => {
    const lines = [line(10), line(20), line(30)];
    expect([5, 10, 11, 30, 31].map((id) => firstFrom(lines, id))).toEqual([0, 0, 1, 2, 3]);
  });
});

describe("hits", () => {
  const lines = [line(40), line(50), line(60), line(70)];

  it("are those outside and those of the loaded lines, in order", () => {
    // Of the loaded part, what was found there counts, not what the server says.
    const hits = new Hits([10, 20, 50, 55, 90], lines, [1, 3], 40, 79);
    expect(Array.from({ length: hits.count }, (_, at) => hits.id(at))).toEqual([10, 20, 50, 70, 90]);
    expect([10, 50, 70, 90, 55].map((id) => hits.at(id))).toEqual([0, 2, 3, 4, -1]);
    expect(hits.firstLoaded).toBe(2);
  });

  it("stay when another part is loaded", () => {
    const before = new Hits([10, 50, 90], lines, [1], 40, 79);
    const after = new Hits([10, 50, 90], [line(85), line(90)], [1], 80, Number.POSITIVE_INFINITY);
    expect([before.count, before.at(90)]).toEqual([3, 2]);
    expect([after.count, after.at(90)]).toEqual([3, 2]);
  });

  it("can be none", () => {
    const none = new Hits([], lines, [], 0, Number.POSITIVE_INFINITY);
    expect([none.count, none.firstLoaded, none.at(40)]).toEqual([0, -1, -1]);
  });
});
