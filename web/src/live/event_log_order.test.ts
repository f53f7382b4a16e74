import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type EventLog, LogReader } from "./event_log";
import type { LiveEvent } from "./stream";

// The stream of the page, by hand.
const live = vi.hoisted(() => ({ event: (_: unknown) => {}, reset: () => {} }));
vi.mock("./store", () => ({
  onLive: (event: (event: unknown) => void, reset: () => void) => {
    live.event = event;
    live.reset = reset;
    return () => {};
  },
}));

// The history, by hand too; there is no output in it.
const history = vi.hoisted(() => ({ ask: (_: number): Promise<unknown> => Promise.reject() }));
vi.mock("@/api/client", () => ({
  api: {
    GET: (_: string, { params }: { params: { query: { after: number; type?: string } } }) =>
      params.query.type ? Promise.resolve({ events: [] }) : history.ask(params.query.after),
  },
  data: (call: Promise<unknown>) => call,
}));

const event = (id: number): LiveEvent => ({ id, type: "log", timestamp: "", task_id: "t" });
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, at) => event(first + at));

/** Questions about the history, answered in whatever order a test wants. */
let questions: { after: number; answer: (events: LiveEvent[]) => void; fail: () => void }[];
let shown: EventLog | null;
let reader: LogReader;
const settle = () => vi.advanceTimersByTimeAsync(0);
const ids = () => shown?.events.map((each) => each.id);

beforeEach(async () => {
  vi.useFakeTimers();
  questions = [];
  shown = null;
  history.ask = (after) =>
    new Promise((resolve, reject) => {
      questions.push({ after, answer: (events) => resolve({ events, ...(events.length === 1000 && { next: events.at(-1)?.id }) }), fail: () => reject(new Error("unreachable")) });
    });
  reader = new LogReader({ task_id: "t" }, 100_000, (log) => {
    shown = log;
  });
  await settle();
});

afterEach(() => {
  reader.close();
  vi.useRealTimers();
});

test("live events wait for the history and are there once", async () => {
  live.event(event(3));
  live.event({ ...event(4), task_id: "other" });
  live.event(event(5));
  questions[0]?.answer(upTo(3));
  await settle();
  expect(shown).toMatchObject({ loading: false, error: null });
  expect(ids()).toEqual([1, 2, 3, 5]);
  live.event(event(6));
  await vi.advanceTimersByTimeAsync(200);
  expect(ids()).toEqual([1, 2, 3, 5, 6]);
});

test("what happened between the first reading and the stream is not lost", async () => {
  // The first answer ends at 10. Then 11 and 12 happen, and the stream begins behind them.
  live.reset();
  await settle();
  questions[0]?.answer(upTo(10));
  await settle();
  live.event(event(13));
  await settle();
  expect(questions.length).toBe(2);
  questions[1]?.answer(upTo(12, 11));
  await settle();
  expect(ids()).toEqual(upTo(13).map((each) => each.id));
});

test("however often it is told to read again, it reads once more", async () => {
  for (let times = 0; times < 5; times += 1) live.reset();
  questions[0]?.answer(upTo(2));
  await settle();
  questions[1]?.answer([]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(questions.map((each) => each.after)).toEqual([0, 2]);
  expect(shown).toMatchObject({ loading: false });
});

test("a reading that fails is shown and repeated, and live events make no hole meanwhile", async () => {
  questions[0]?.fail();
  await settle();
  expect(shown?.error?.message).toBe("unreachable");
  live.event(event(9));
  await vi.advanceTimersByTimeAsync(5000);
  expect(questions[1]?.after).toBe(0);
  live.event(event(10));
  questions[1]?.answer(upTo(9));
  await settle();
  expect(shown?.error).toBe(null);
  expect(ids()).toEqual(upTo(10).map((each) => each.id));
});

test("long histories come by pages", async () => {
  questions[0]?.answer(upTo(1000));
  await settle();
  live.event(event(1500));
  expect(questions[1]?.after).toBe(1000);
  questions[1]?.answer(upTo(1499, 1001));
  await settle();
  expect(ids()).toEqual(upTo(1500).map((each) => each.id));
});
