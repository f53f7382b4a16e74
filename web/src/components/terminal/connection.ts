// A shell in a sandbox over a WebSocket. A lost connection is made again, to the same shell.
import { ApiError, json } from "@/api/client";
import { backoff } from "@/live/stream";
import { Seam } from "./replay";

export interface ShellInfo {
  id: string;
  pid: number;
  attached: number;
  created_at: string;
}

export const listShells = async (sandboxId: string) =>
  (await json<{ terminals: ShellInfo[] }>(`/api/v1/sandboxes/${sandboxId}/terminals`)).terminals;

export const endShell = (sandboxId: string, id: string) =>
  json<void>(`/api/v1/sandboxes/${sandboxId}/terminals/${id}`, { method: "DELETE" });

export type ShellState =
  | { state: "connecting" }
  | { state: "ready" }
  | { state: "waiting"; until: number }
  /** It cannot be reached and will not be by trying again. */
  | { state: "refused"; reason: string }
  | { state: "ended"; reason: string };

interface Options {
  sandboxId: string;
  /** The shell to come back to; "" for a new one. */
  shellId: string;
  size: () => { cols: number; rows: number };
  onReady: (shellId: string) => void;
  onOutput: (bytes: Uint8Array) => void;
  onState: (state: ShellState) => void;
}

type Message =
  | { type: "ready"; terminal: string }
  | { type: "exit"; exit_code: number }
  | { type: "error"; message: string };

export class ShellConnection {
  private socket: WebSocket | null = null;
  private shellId: string;
  private failures = 0;
  private closed = false;
  private over = false;
  private replaying = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly seam = new Seam();

  constructor(private readonly options: Options) {
    this.shellId = options.shellId;
    addEventListener("online", this.hurry);
    // Not at once: React shows a component twice while it is developed, and one shell is enough.
    this.timer = setTimeout(() => this.connect());
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    removeEventListener("online", this.hurry);
    this.socket?.close();
  }

  /** Connects now instead of waiting. */
  readonly hurry = () => {
    if (this.closed || this.over || this.socket) return;
    clearTimeout(this.timer);
    this.connect();
  };

  send(bytes: Uint8Array<ArrayBuffer>) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(bytes);
  }

  resize(cols: number, rows: number) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type: "resize", cols, rows }));
  }

  private connect() {
    if (this.failures === 0) this.options.onState({ state: "connecting" });
    const { cols, rows } = this.options.size();
    const query = new URLSearchParams({ cols: String(cols), rows: String(rows) });
    if (this.shellId) query.set("terminal", this.shellId);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/sandboxes/${this.options.sandboxId}/terminal?${query}`);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => (typeof data === "string" ? this.hear(JSON.parse(data)) : this.show(new Uint8Array(data)));
    socket.onclose = () => {
      this.socket = null;
      if (!this.closed && !this.over) void this.lost();
    };
    this.socket = socket;
  }

  private hear(message: Message) {
    if (message.type === "ready") {
      this.failures = 0;
      this.replaying = this.shellId !== "";
      this.shellId = message.terminal;
      this.options.onReady(message.terminal);
      this.options.onState({ state: "ready" });
    } else if (message.type === "exit") {
      this.end(`The shell ended with code ${message.exit_code}.`);
    }
    // An error is followed by the end of the connection, and lost() finds out what it means.
  }

  private show(bytes: Uint8Array) {
    const fresh = this.replaying ? this.seam.fresh(bytes) : bytes;
    this.replaying = false;
    this.seam.note(fresh);
    this.options.onOutput(fresh);
  }

  private end(reason: string) {
    this.over = true;
    this.options.onState({ state: "ended", reason });
  }

  /** A WebSocket does not tell why it was refused; another call does, and renews a login that is over. */
  private async lost() {
    try {
      const shells = await listShells(this.options.sandboxId);
      if (this.shellId && !shells.some((shell) => shell.id === this.shellId)) {
        this.end("This shell is over.");
        return;
      }
    } catch (error) {
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        this.options.onState({ state: "refused", reason: error.message });
        return;
      }
    }
    if (this.closed) return;
    this.failures += 1;
    const wait = backoff(this.failures);
    this.options.onState({ state: "waiting", until: Date.now() + wait });
    this.timer = setTimeout(() => this.connect(), wait);
  }
}
