import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { useBuildLog } from "./build_log";

const line = (id: number) => `event: log\ndata: ${JSON.stringify({ id, text: `line ${id}`, raw: "", source: "stdout", phase: "code", ts: "2026-01-01T00:00:00Z" })}\n\n`;
const DONE = "event: done\ndata: {}\n\n";
const refusal = (status: number, headers = {}) => () => new Response(JSON.stringify({ error: { code: "x", message: "not now" } }), { status, headers });

/** Answers one after the other; what was asked for. */
function serve(...answers: (() => Response)[]) {
  const asked: (string | null)[] = [];
  vi.stubGlobal("fetch", async (_: string, init?: RequestInit) => {
    asked.push(new Headers(init?.headers).get("Last-Event-ID"));
    return answers[asked.length - 1]!();
  });
  return asked;
}
const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("goes on by itself after the server was busy, when it said and where it was", async () => {
  const asked = serve(() => new Response(line(0) + line(1)), refusal(503, { "Retry-After": "60" }), () => new Response(line(2) + DONE));
  const { result } = renderHook(() => useBuildLog("b"));
  await pass(5_000);
  expect(result.current.lines.map(({ id }) => id)).toEqual([0, 1]);
  expect(result.current.error?.message).toBe("Not now");
  await pass(40_000);
  expect(asked).toEqual([null, "1"]);
  await pass(30_000);
  expect(result.current.lines.map(({ id }) => id)).toEqual([0, 1, 2]);
  expect(result.current.error).toBeNull();
  expect(asked).toEqual([null, "1", "1"]);
});

it("does not ask again for what is not there", async () => {
  const asked = serve(refusal(404));
  const { result } = renderHook(() => useBuildLog("b"));
  await pass(120_000);
  expect(result.current).toMatchObject({ loading: false, lines: [] });
  expect(result.current.error?.message).toBe("Not now");
  expect(asked.length).toBe(1);
});

it("a build that says nothing yet is not loading for ever", async () => {
  serve(() => new Response(new ReadableStream()));
  const { result } = renderHook(() => useBuildLog("b"));
  expect(result.current.loading).toBe(true);
  await pass(1_000);
  expect(result.current).toMatchObject({ loading: false, lines: [], error: null });
});
