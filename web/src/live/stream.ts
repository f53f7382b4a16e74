// One stream of events, read by fetch: it can be told where to go on (Last-Event-ID), tells its status
// code, and connects again by itself.
import { createParser } from "eventsource-parser";
import { ApiError, errorOf, request } from "@/api/client";

export interface LiveEvent {
  id: number;
  type: string;
  timestamp: string;
  task_id?: string;
  agent_id?: string;
  squad_id?: string;
  execution_id?: string;
  run_id?: string;
  sandbox_id?: string;
  session_id?: string;
  build_id?: string;
  [field: string]: unknown;
}

export type Connection =
  | { state: "connecting" }
  | { state: "live" }
  | { state: "waiting"; until: number; reason: string }
  | { state: "polling"; reason: string }
  | { state: "refused"; reason: string };

export interface StreamOptions {
  /** The last event that is known already; -1 = none. */
  after?: number;
  onEvent: (event: LiveEvent) => void;
  /** What was asked for is not in the log any more, or this is the first connection. */
  onReset: () => void;
  onConnection: (connection: Connection) => void;
}

const HEARTBEAT_MS = 15_000;
const MAX_WAIT_MS = 30_000;
const POLL_AFTER_FAILURES = 3;

export class EventStream {
  private lastId: number;
  private failures = 0;
  private connectedAt = 0;
  private abort = new AbortController();
  private wake: (() => void) | null = null;
  private closed = false;

  constructor(private readonly options: StreamOptions) {
    this.lastId = options.after ?? -1;
    addEventListener("online", this.hurry);
    document.addEventListener("visibilitychange", this.hurry);
    void this.run();
  }

  close() {
    this.closed = true;
    removeEventListener("online", this.hurry);
    document.removeEventListener("visibilitychange", this.hurry);
    this.abort.abort();
    this.wake?.();
  }

  /** Connects at once instead of waiting for the next attempt. */
  readonly hurry = () => {
    if (document.visibilityState === "visible") this.wake?.();
  };

  private async run() {
    while (!this.closed) {
      let reason = "The connection was lost.";
      let wait = 0;
      try {
        await this.read();
      } catch (error) {
        if (this.closed) return;
        if (error instanceof ApiError) {
          if (error.status === 401 || error.status === 403 || error.status === 404) {
            this.options.onConnection({ state: "refused", reason: error.message });
            return;
          }
          reason = error.message;
          wait = error.retryAfter * 1000;
        }
      }
      if (this.closed) return;
      const lived = this.connectedAt ? Date.now() - this.connectedAt : 0;
      this.connectedAt = 0;
      // One that lived is tried again at once: most often only its connection was cut.
      if (lived > 1000 && wait === 0) continue;
      this.failures += 1;
      await this.pause(Math.max(wait, backoff(this.failures)), reason);
    }
  }

  private async pause(ms: number, reason: string) {
    const polling = this.failures > POLL_AFTER_FAILURES;
    this.options.onConnection(polling ? { state: "polling", reason } : { state: "waiting", until: Date.now() + ms, reason });
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wake = null;
  }

  private async read() {
    this.abort = new AbortController();
    // Silence means that the connection is dead: the server sends something every 15 seconds.
    let silence = setTimeout(() => this.abort.abort(), 2 * HEARTBEAT_MS);
    try {
      const first = this.lastId < 0;
      const response = await request(`/api/v1/events${first ? "?replay=0" : ""}`, {
        headers: first ? {} : { "Last-Event-ID": String(this.lastId) },
        signal: this.abort.signal,
      });
      if (!response.ok || !response.body) throw await errorOf(response);
      const parser = createParser({ onEvent: (event) => this.take(event.event ?? "", event.data) });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(silence);
        silence = setTimeout(() => this.abort.abort(), 2 * HEARTBEAT_MS);
        parser.feed(value);
      }
    } finally {
      clearTimeout(silence);
    }
  }

  private take(type: string, text: string) {
    const event = JSON.parse(text) as LiveEvent & { position?: number };
    if (type === "connected") {
      // The first time, whatever was read before may be older than the stream: read it again.
      if (this.lastId < 0) {
        this.lastId = event.position ?? 0;
        this.options.onReset();
      }
      this.failures = 0;
      this.connectedAt = Date.now();
      this.options.onConnection({ state: "live" });
      return;
    }
    if (type === "reset") this.options.onReset();
    if (type === "heartbeat" || type === "overflow" || type === "reset") return;
    if (event.id <= this.lastId) return;
    this.lastId = event.id;
    this.options.onEvent(event);
  }
}

export function backoff(failures: number): number {
  const full = Math.min(MAX_WAIT_MS, 1000 * 2 ** (failures - 1));
  return full * (0.75 + Math.random() * 0.5);
}
