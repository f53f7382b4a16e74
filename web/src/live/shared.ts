// One stream for all tabs of a browser: browsers open only six connections to a server, and a seventh tab would
// wait for ever. The tab that holds a lock reads the stream and tells the others; when it is closed, the next
// one goes on behind the last event it has seen. Without locks (plain http to another machine) every tab reads
// for itself.
import { type Connection, EventStream, type LiveEvent, type StreamOptions } from "./stream";

const NAME = "caisson-live";

type Told =
  | { kind: "event"; event: LiveEvent }
  | { kind: "reset" }
  | { kind: "connection"; connection: Connection }
  | { kind: "hello" }
  | { kind: "hurry" };

export class SharedStream {
  private readonly channel: BroadcastChannel | null;
  private readonly closing = new AbortController();
  private stream: EventStream | null = null;
  private connection: Connection = { state: "connecting" };
  private lastId = -1;
  private release: (() => void) | null = null;
  /** A follower that has not heard from the reading tab yet. */
  private fresh = true;

  constructor(private readonly options: StreamOptions) {
    if (!navigator.locks || typeof BroadcastChannel === "undefined") {
      this.channel = null;
      this.lead();
      return;
    }
    this.channel = new BroadcastChannel(NAME);
    this.channel.onmessage = ({ data }: MessageEvent<Told>) => this.hear(data);
    this.tell({ kind: "hello" });
    void this.wait();
  }

  close() {
    this.closing.abort();
    this.stream?.close();
    this.release?.();
    this.channel?.close();
  }

  /** Connects at once instead of waiting for the next attempt. */
  hurry() {
    if (this.stream) this.stream.hurry();
    else this.tell({ kind: "hurry" });
  }

  private async wait() {
    try {
      await navigator.locks.request(NAME, { signal: this.closing.signal }, () => {
        this.lead();
        return new Promise<void>((resolve) => {
          this.release = resolve;
        });
      });
    } catch {
      // Closed before it was this tab's turn.
    }
  }

  private lead() {
    this.stream = new EventStream({
      after: this.lastId,
      onEvent: (event) => {
        this.take(event);
        this.tell({ kind: "event", event });
      },
      onReset: () => {
        this.options.onReset();
        this.tell({ kind: "reset" });
      },
      onConnection: (connection) => {
        this.show(connection);
        this.tell({ kind: "connection", connection });
      },
    });
  }

  private hear(told: Told) {
    if (this.stream) {
      if (told.kind === "hello") this.tell({ kind: "connection", connection: this.connection });
      if (told.kind === "hurry") this.stream.hurry();
      return;
    }
    if (told.kind === "event") this.take(told.event);
    if (told.kind === "reset") this.options.onReset();
    if (told.kind === "connection") {
      // What this tab read before it listened may be old.
      if (this.fresh && told.connection.state === "live") {
        this.fresh = false;
        this.options.onReset();
      }
      this.show(told.connection);
    }
  }

  private take(event: LiveEvent) {
    if (event.id <= this.lastId) return;
    this.lastId = event.id;
    this.options.onEvent(event);
  }

  private show(connection: Connection) {
    this.connection = connection;
    this.options.onConnection(connection);
  }

  private tell(told: Told) {
    if (!this.closing.signal.aborted) this.channel?.postMessage(told);
  }
}
