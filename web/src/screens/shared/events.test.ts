import { afterEach, expect, it, vi } from "vitest";
import { readOn } from "./events";

afterEach(() => vi.unstubAllGlobals());

const event = (id: number) => ({ id, type: "log", timestamp: "2026-01-01T00:00:00Z" });

/** A server with so many events. */
function serve(count: number) {
  const asked: number[] = [];
  vi.stubGlobal("fetch", async (url: string) => {
    const query = new URL(url, "http://h").searchParams;
    const after = Number(query.get("after"));
    asked.push(after);
    const events = Array.from({ length: Math.min(Number(query.get("limit")), count - after) }, (_, index) => event(after + index + 1));
    return new Response(JSON.stringify({ events }));
  });
  return asked;
}

it("reads all pages, and later only what is new", async () => {
  const asked = serve(2_500);
  const first = await readOn("/api/v1/shared/t", []);
  expect(first.events.length).toBe(2_500);
  expect(first.more).toBe(false);
  expect(asked).toEqual([0, 1_000, 2_000]);
  const later = serve(2_501);
  const second = await readOn("/api/v1/shared/t", first.events);
  expect(second.events.length).toBe(2_501);
  expect(later).toEqual([2_500]);
});

it("rests before it asks too often, and says that there is more", async () => {
  const asked = serve(50_000);
  const first = await readOn("/api/v1/shared/t", []);
  expect(asked.length).toBe(20);
  expect(first).toMatchObject({ more: true });
  expect((await readOn("/api/v1/shared/t", first.events)).events.length).toBe(40_000);
});
