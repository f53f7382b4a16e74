// The log of a task or a session: lines of what was printed, rebuilt from the pieces that events carry.
import { cutText } from "@/components/log/cut";
import { idOf } from "@/components/log/places";
import type { LogGroup, LogLine } from "@/components/LogViewer";
import { stepLabel } from "@/components/Stepper";
import type { LiveEvent } from "@/live/stream";
import { duration } from "@/ui/time";
import { type Folder, numberOf, textOf } from "./fold";

export interface Log {
  lines: LogLine[];
  groups: LogGroup[];
  /** What the platform said itself, also where output is missing around it. */
  notes: LogLine[];
}

const STATES: Record<string, LogGroup["state"]> = { done: "done", canceled: "done", stopped: "done", failed: "failed" };

/** Which one of a list it is, counted from 1; a new one is the last. */
function numberIn(list: string[], one: string): number {
  if (!list.includes(one)) list.push(one);
  return list.indexOf(one) + 1;
}

export class LogFolder implements Folder<Log> {
  private readonly lines: LogLine[] = [];
  private readonly notes: LogLine[] = [];
  private readonly groups: LogGroup[] = [];
  private readonly places = new Map<string, number>();
  /** The line of each stream that has no end yet. */
  private readonly unfinished = new Map<string, number>();
  private readonly attempts: string[] = [];
  private readonly answers: string[] = [];
  /** The group that each attempt is at. */
  private readonly at = new Map<string, string>();

  /** Only lines of the events `from` to `until` are shown: between others, output is missing. */
  constructor(
    private readonly from = 0,
    private readonly until = Number.POSITIVE_INFINITY,
  ) {}

  state(): Log {
    return { lines: this.lines.slice(), groups: this.groups.slice(), notes: this.notes };
  }

  add(event: LiveEvent) {
    switch (event.type) {
      case "execution_step":
        return this.step(event);
      case "session_message":
        return this.answer(event);
      case "command_output":
        return this.output(event);
      case "git_operation":
        return this.git(event);
      case "log":
        return event.cut_bytes ? this.cut(event) : this.note(event, textOf(event.message));
      case "error":
        return this.note(event, textOf(event.message), "stderr");
      case "sandbox_created":
        return this.note(event, `The sandbox${event.sandbox_id ? ` ${event.sandbox_id}` : ""} was made.`);
      case "sandbox_terminated":
        return this.note(event, `The sandbox ended${event.reason ? `: ${textOf(event.reason).replaceAll("_", " ")}` : ""}.`);
      case "sandbox_error":
        return this.note(event, textOf(event.error_message), "stderr");
    }
  }

  private step(event: LiveEvent) {
    const execution = event.execution_id ?? "";
    const state = textOf(event.state);
    const id = `${execution}/${textOf(event.step)}`;
    const running = state === "running";
    if (running || state === "failed") this.at.set(execution, id);
    const old = this.group(id, `${this.attempt(execution)}${stepLabel(textOf(event.step))}`, event.timestamp);
    const now = STATES[state] ?? "running";
    this.change(id, { state: now, finishedAt: now === "running" ? null : event.timestamp });
    if (running && numberOf(event.attempt) > 1 && old.state === "running") this.note(event, `Attempt ${numberOf(event.attempt)}`);
    if (now === "failed") this.note(event, textOf(event.message), "stderr");
  }

  /** "Attempt 2 · " for the second execution of a task. */
  private attempt(execution: string): string {
    const number = numberIn(this.attempts, execution);
    return number > 1 ? `Attempt ${number} · ` : "";
  }

  private answer(event: LiveEvent) {
    if (event.role !== "assistant") return;
    const id = `${textOf(event.message_id)}/agent`;
    const state = textOf(event.state);
    if (state === "queued") return;
    this.group(id, `Answer ${numberIn(this.answers, id)}`, event.timestamp);
    this.at.set(textOf(event.message_id), id);
    const now = STATES[state] ?? "running";
    this.change(id, { state: now, finishedAt: now === "running" ? null : event.timestamp });
    if (event.error) this.note({ ...event, execution_id: textOf(event.message_id) }, textOf(event.error), "stderr");
  }

  private output(event: LiveEvent) {
    const operation = textOf(event.operation_id);
    const group = operation ? `op/${operation}` : event.execution_id ? `${event.execution_id}/agent` : undefined;
    if (group) this.group(group, operation ? "Command" : "Work", event.timestamp, operation ? "done" : "running");
    const stream = event.stream === "stderr" ? "stderr" : "stdout";
    this.pieces(`${group} ${event.sandbox_id ?? ""} ${stream}`, textOf(event.output), { event, stream, group });
  }

  private git(event: LiveEvent) {
    const name = `git ${textOf(event.operation)}`;
    const status = textOf(event.status);
    const took = event.duration_ms === undefined ? "" : ` in ${duration(numberOf(event.duration_ms))}`;
    if (status === "started") this.note(event, name);
    else if (status === "completed") this.note(event, `${name} done${took}`);
    else if (status === "failed") this.note(event, `${name} failed${took}: ${textOf(event.message)}`, "stderr");
    // Progress writes over itself, as in a terminal.
    else if (this.isShown(event)) this.pieces(`${event.execution_id} ${name}`, `\r${textOf(event.message)}`, { event, stream: "system", group: this.here(event) });
  }

  private here = (event: LiveEvent) => this.at.get(event.execution_id ?? "");

  private isShown = (event: LiveEvent) => event.id >= this.from && event.id <= this.until;

  private cut(event: LiveEvent) {
    if (!this.isShown(event)) return;
    const text = cutText(numberOf(event.cut_lines), numberOf(event.cut_bytes));
    this.lines.push({ ...this.line(event, 0, "system", text, this.here(event)), cut: true });
  }

  private note(event: LiveEvent, text: string, stream: LogLine["stream"] = "system") {
    text.split("\n").forEach((part, index) => {
      if (!part.trim()) return;
      const line = this.line(event, index, stream, part, this.here(event));
      this.notes.push(line);
      if (this.isShown(event)) this.lines.push(line);
    });
  }

  /** `index`: how many lines end in the event before it. */
  private line(event: LiveEvent, index: number, stream: LogLine["stream"], text: string, group: string | undefined): LogLine {
    return { id: idOf(event.id, index), time: event.timestamp, stream, text, group };
  }

  /** Takes a piece of a stream: it may begin and end in the middle of a line. */
  private pieces(key: string, output: string, to: { event: LiveEvent; stream: LogLine["stream"]; group?: string }) {
    const parts = output.split("\n");
    parts.forEach((part, index) => {
      const last = index === parts.length - 1;
      const open = this.unfinished.get(key);
      if (open !== undefined) {
        const line = this.lines[open]!;
        this.lines[open] = { ...line, text: overwritten(line.text + part, !last) };
        if (!last) this.unfinished.delete(key);
      } else if (!last || part) {
        this.lines.push(this.line(to.event, index, to.stream, overwritten(part, !last), to.group));
        if (last) this.unfinished.set(key, this.lines.length - 1);
      }
    });
  }

  private group(id: string, title: string, time: string, state: LogGroup["state"] = "running"): LogGroup {
    const place = this.places.get(id);
    if (place !== undefined) return this.groups[place]!;
    this.places.set(id, this.groups.length);
    this.groups.push({ id, title, state, startedAt: time, finishedAt: state === "running" ? null : time });
    return { ...this.groups.at(-1)!, state: "done" };
  }

  private change(id: string, change: Partial<LogGroup>) {
    const place = this.places.get(id)!;
    this.groups[place] = { ...this.groups[place]!, ...change };
  }
}

/** What a terminal would show of a line with carriage returns. One at the very end may be half of a line's end. */
function overwritten(text: string, whole: boolean): string {
  if (!text.includes("\r")) return text;
  const body = text.endsWith("\r") ? text.slice(0, -1) : text;
  const shown = body.slice(body.lastIndexOf("\r") + 1);
  return whole || !text.endsWith("\r") ? shown : `${shown}\r`;
}
