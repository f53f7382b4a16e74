import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { EventLog } from "./event_log";
import type { LiveEvent } from "./stream";

// A server with a history, and a stream.
let history: LiveEvent[] = [];
let tell: (event: LiveEvent) => void = () => {};
let reset: () => void = () => {};
vi.mock("@/api/client", () => ({
  data: (page: unknown) => page,
  api: { GET: async (_: string, { params }: { params: { query: Query } }) => answer(params.query) },
}));
vi.mock("./store", () => ({
  onLive: (listener: typeof tell, again: typeof reset) => {
    tell = listener;
    reset = again;
    return () => {};
  },
}));

interface Query {
  after?: number;
  before?: number;
  type?: string;
  not_type?: string;
  limit: number;
}

function answer({ after, before = Number.POSITIVE_INFINITY, type, not_type, limit }: Query) {
  const found = history.filter((each) => each.id > (after ?? 0) && each.id < before && (!type || each.type === type) && each.type !== not_type);
  const more = found.length > limit;
  if (after !== undefined || before === Number.POSITIVE_INFINITY) {
    const events = found.slice(0, limit);
    return { events, ...(more && { next: events.at(-1)!.id }) };
  }
  const events = found.slice(-limit);
  return { events, ...(more && { previous: events[0]!.id }) };
}

const event = (id: number, type = "command_output"): LiveEvent => ({ id, type, timestamp: "", task_id: "t" });
/** Every hundredth is a note. */
const kind = (id: number) => (id % 100 === 0 ? "log" : "command_output");
const happen = (from: number, until: number) => {
  for (let id = from; id <= until; id += 1) history.push(event(id, kind(id)));
};

let log: EventLog;
let close = () => {};
async function open(keep = 150_000) {
  const { LogReader } = await import("./event_log");
  const reader = new LogReader({ task_id: "t" }, keep, (shown) => {
    log = shown;
  });
  close = () => reader.close();
  await settled();
}
const settled = () => vi.advanceTimersByTimeAsync(500);
const output = () => log.events.filter((each) => each.type === "command_output").map((each) => each.id);
const notes = () => log.events.filter((each) => each.type === "log").map((each) => each.id);
const inOrder = () => log.events.every((each, at) => at === 0 || log.events[at - 1]!.id < each.id);

beforeEach(() => {
  vi.useFakeTimers();
  history = [];
});
afterEach(() => {
  close();
  vi.useRealTimers();
});

describe("a log of events", () => {
  it("is whole when it is short", async () => {
    happen(1, 300);
    await open();
    expect(log.events.map((each) => each.id)).toEqual(history.map((each) => each.id));
    expect([log.output.from, log.output.until, log.loading]).toEqual([0, Number.POSITIVE_INFINITY, false]);
  });

  it("has the newest output and all notes, and loads earlier output", async () => {
    happen(1, 5000);
    await open();
    expect(output()).toHaveLength(1000);
    expect(output().at(-1)).toBe(4999);
    expect(notes()).toHaveLength(50);
    const { version } = log;
    log.output.earlier();
    await settled();
    expect(log.version).not.toBe(version);
    expect(output()).toHaveLength(2000);
    expect(log.output.from).toBe(output()[0]);
    for (let n = 0; n < 3; n += 1) {
      log.output.earlier();
      await settled();
    }
    expect(log.events).toEqual(history);
    expect(log.output.from).toBe(0);
  });

  it("holds less of it when the pieces are large", async () => {
    for (let id = 1; id <= 1000; id += 1) history.push({ ...event(id), output: "x".repeat(32_000) });
    await open();
    expect(output().length).toBeGreaterThanOrEqual(125);
    expect(output().length).toBeLessThan(140);
    log.output.around(500);
    await settled();
    expect(output()).toContain(500);
    expect(output().length).toBeLessThan(210);
    expect(log.output.from).toBe(output()[0]);
  });

  it("follows what comes, also while something is loaded", async () => {
    happen(1, 2000);
    await open();
    const { version } = log;
    log.output.earlier();
    for (let id = 2001; id <= 2010; id += 1) {
      history.push(event(id));
      tell(event(id));
    }
    await settled();
    expect(output().slice(-10)).toEqual(history.slice(-10).map((each) => each.id));
    expect(inOrder()).toBe(true);
    expect(log.version).toBe(version + 1);
  });

  it("goes to a part in the middle, on from there, and back to the end", async () => {
    happen(1, 5000);
    await open();
    log.output.around(1234);
    await settled();
    expect(output()).toHaveLength(1000);
    expect(output()).toContain(1234);
    expect(log.output.from).toBe(output()[0]);
    expect(log.output.until).toBe(output().at(-1));
    expect(notes()).toHaveLength(50);

    // What is printed meanwhile is not here, what happens is.
    happen(5001, 5100);
    for (const each of history.slice(-100)) tell(each);
    await settled();
    expect(output().at(-1)).toBe(log.output.until);
    expect(notes().at(-1)).toBe(5100);
    expect(inOrder()).toBe(true);

    log.output.later();
    await settled();
    expect(output()).toHaveLength(2000);
    for (let n = 0; n < 4; n += 1) {
      log.output.later();
      await settled();
    }
    expect(log.output.until).toBe(Number.POSITIVE_INFINITY);
    expect(output().at(-1)).toBe(5099);
    expect(new Set(log.events.map((each) => each.id)).size).toBe(log.events.length);
    expect(inOrder()).toBe(true);

    log.output.around(10);
    await settled();
    expect(log.output.from).toBe(0);
    log.output.latest();
    await settled();
    expect(output().at(-1)).toBe(5099);
    expect(log.output.until).toBe(Number.POSITIVE_INFINITY);
    history.push(event(5101));
    tell(event(5101));
    await settled();
    expect(output().at(-1)).toBe(5101);
  });

  it("has no hole after the stream was away", async () => {
    happen(1, 50);
    await open();
    happen(51, 2500);
    reset();
    await settled();
    expect(log.events).toEqual(history);
  });

  it("lets go of the oldest output", async () => {
    happen(1, 10);
    await open(1000);
    happen(11, 3000);
    reset();
    await settled();
    expect(output().length).toBeLessThanOrEqual(1100);
    expect(log.output.from).toBe(output()[0]);
    expect(notes()).toHaveLength(30);
  });
});
