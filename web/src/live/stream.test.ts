import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Connection, EventStream, type LiveEvent } from "./stream";

const encoder = new TextEncoder();

/** A server whose answers are written by hand, one per connection. */
class Server {
  asked: { url: string; lastId: string | null }[] = [];
  writers: ((text: string) => void)[] = [];
  enders: (() => void)[] = [];
  status = 200;

  readonly fetch = async (url: string | URL | Request, init?: RequestInit) => {
    this.asked.push({ url: String(url), lastId: new Headers(init?.headers).get("Last-Event-ID") });
    if (this.status !== 200)
      return new Response(JSON.stringify({ error: { code: "x", message: "refused" } }), {
        status: this.status,
        headers: this.status === 429 ? { "Retry-After": "7" } : {},
      });
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.writers.push((text) => controller.enqueue(encoder.encode(text)));
        this.enders.push(() => controller.close());
        init?.signal?.addEventListener("abort", () => controller.error(new DOMException("aborted", "AbortError")));
      },
    });
    return new Response(body);
  };
}

const frame = (type: string, fields: object, id?: number) =>
  `${id ? `id: ${id}\n` : ""}event: ${type}\ndata: ${JSON.stringify({ ...fields, ...(id && { id, type }) })}\n\n`;

let server: Server;
let events: LiveEvent[];
let states: Connection[];
let resets: number;
let stream: EventStream;

const open = () => {
  stream = new EventStream({
    onEvent: (event) => events.push(event),
    onReset: () => {
      resets += 1;
    },
    onConnection: (connection) => states.push(connection),
  });
};
const settle = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
  server = new Server();
  vi.stubGlobal("fetch", server.fetch);
  events = [];
  states = [];
  resets = 0;
});

afterEach(() => {
  stream.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("the first connection reads everything again, a later one goes on where it was", async () => {
  open();
  await settle();
  server.writers[0]?.(frame("connected", { position: 10 }) + frame("log", { message: "a" }, 11));
  await settle();
  expect(resets).toBe(1);
  expect(events.map((each) => each.id)).toEqual([11]);
  server.enders[0]?.();
  await vi.advanceTimersByTimeAsync(2000);
  expect(server.asked[1]?.lastId).toBe("11");
  server.writers[1]?.(frame("connected", { position: 12 }) + frame("log", { message: "a" }, 11) + frame("log", { message: "b" }, 12));
  await settle();
  expect(events.map((each) => each.id)).toEqual([11, 12]);
  expect(resets).toBe(1);
});

test("a reset makes the page read again", async () => {
  open();
  await settle();
  server.writers[0]?.(frame("connected", { position: 1 }) + frame("reset", { reason: "old", oldest: 5 }));
  await settle();
  expect(resets).toBe(2);
});

test("silence for two heartbeats is a lost connection", async () => {
  open();
  await settle();
  server.writers[0]?.(frame("connected", { position: 1 }));
  await vi.advanceTimersByTimeAsync(31_000);
  expect(server.asked.length).toBe(2);
});

test("one that lived is tried again at once, and only then waited for", async () => {
  open();
  await settle();
  server.writers[0]?.(frame("connected", { position: 1 }));
  await vi.advanceTimersByTimeAsync(5000);
  server.status = 500;
  server.enders[0]?.();
  await settle();
  expect(server.asked.length).toBe(2);
  expect(states.at(-1)?.state).toBe("waiting");
});

test("a refusal is shown and not tried again; too many streams are waited for", async () => {
  server.status = 403;
  open();
  await settle();
  expect(states.at(-1)).toEqual({ state: "refused", reason: "Refused" });
  stream.close();
  server.status = 429;
  open();
  await settle();
  const waiting = states.at(-1);
  expect(waiting?.state === "waiting" && waiting.until - Date.now()).toBe(7000);
});

test("after three failures the page polls and says so", async () => {
  server.status = 500;
  open();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(states.at(-1)?.state).toBe("polling");
});
