// What happened, as entries of the activity feed: what people want to know, not every event.
import { stepLabel } from "@/components/Stepper";
import type { LiveEvent } from "@/live/stream";
import { capitalized } from "@/ui/format";
import { type Folder, numberOf, textOf } from "./fold";

interface Base {
  id: number;
  time: string;
}

export interface PlanStep {
  title: string;
  status: string;
}

export type Entry = Base &
  (
    | { kind: "phase"; step: string; state: string; attempt: number; message: string; until?: string }
    | { kind: "message"; text: string }
    | { kind: "tool"; tool: string; input: unknown }
    | { kind: "file"; path: string; change: string }
    | { kind: "error"; text: string; tried?: string[]; advice?: string }
    | { kind: "commit"; text: string }
    | { kind: "pull"; text: string; number: number; url: string }
    | { kind: "approval"; approval: string; title: string }
    | { kind: "plan"; steps: PlanStep[] }
    | { kind: "rest"; until: string; over: boolean }
    | { kind: "note"; text: string; detail?: boolean }
  );

type ToolEntry = Extract<Entry, { kind: "tool" | "file" }>;
/** Calls of tools that came one after the other. */
export type ToolGroup = Base & { kind: "tools"; items: ToolEntry[] };
export type Shown = Entry | ToolGroup;

const PULLS: Record<string, string> = {
  pr_created: "Pull request opened",
  pr_approved: "Pull request approved",
  pr_changes_requested: "Changes were asked for",
  pr_merged: "Pull request merged",
  pr_closed: "Pull request closed",
  pr_reopened: "Pull request opened again",
};

// What the built-in agent says about itself and no other event tells.
const STATES: Record<string, string> = {
  planning: "The agent makes a plan.",
  executing: "The agent is at work.",
  stuck: "The agent is stuck.",
  budget_exceeded: "The agent has used up its budget.",
};

const ENDS: Record<string, string> = {
  succeeded: "The work is done.",
  completed: "The work is done.",
  failed: "The work failed.",
  dead: "The work failed.",
  canceled: "The work was called off.",
};

export class FeedFolder implements Folder<Entry[]> {
  private readonly entries: Entry[] = [];
  private readonly phases = new Map<string, number>();
  private attempts = 0;
  /** Where the plan is, which is told again whenever it changes, and the rest that is not over. */
  private plan?: number;
  private rest?: number;
  /** What the last failure said: it is told by more than one event. */
  private failure = "";

  state() {
    return this.entries.slice();
  }

  add(event: LiveEvent) {
    const base = { id: event.id, time: event.timestamp };
    const push = (entry: Entry) => void this.entries.push(entry);
    const note = (text: string, detail = false) => push({ ...base, kind: "note", text, detail });
    switch (event.type) {
      case "execution_started":
        this.attempts += 1;
        this.plan = undefined;
        return note(this.attempts > 1 ? `Attempt ${this.attempts} began.` : "The work began.");
      case "execution_completed":
        return note(ENDS[textOf(event.status)] ?? `The work ended: ${textOf(event.status)}.`);
      case "execution_step":
        return this.phase(event);
      case "message":
        return push({ ...base, kind: "message", text: textOf(event.message) });
      case "agent_tool":
        return push({ ...base, kind: "tool", tool: textOf(event.tool), input: event.input });
      case "file_changed":
        return push({ ...base, kind: "file", path: textOf(event.path), change: textOf(event.change) });
      case "error":
        return textOf(event.message) === this.failure ? undefined : push({ ...base, kind: "error", text: textOf(event.message) });
      case "sandbox_error":
        return push({ ...base, kind: "error", text: textOf(event.error_message) });
      case "agent.escalated":
        return push({
          ...base,
          kind: "error",
          text: textOf(event.problem),
          tried: Array.isArray(event.tried) ? event.tried.map(String) : [],
          advice: textOf(event.recommended_action),
        });
      case "approval_requested":
        return push({ ...base, kind: "approval", approval: textOf(event.approval_id), title: textOf(event.title) });
      case "git_operation":
        return this.git(event);
      case "agent.plan":
      case "agent.sleeping":
      case "agent.state":
      case "agent.thinking":
      case "gsd.phase.started":
      case "gsd.phase.completed":
        return this.builtin(event, note);
      case "log":
        return note(textOf(event.message), event.level !== "warning" && event.level !== "error");
      case "sandbox_created":
        return note("A sandbox was made.", true);
      case "sandbox_terminated":
        return note("The sandbox ended.", true);
      default:
        if (event.type in PULLS)
          push({ ...base, kind: "pull", text: PULLS[event.type]!, number: numberOf(event.pr_number), url: textOf(event.pr_url) });
    }
  }

  private phase(event: LiveEvent) {
    const step = textOf(event.step);
    const state = textOf(event.state);
    const name = `${event.execution_id} ${step}`;
    const place = this.phases.get(name);
    if (state === "failed") this.failure = textOf(event.message);
    const ended = state === "done" || state === "failed" || state === "canceled";
    // Cleaning up is told only if it fails; a step that waits for its turn not at all.
    if (place === undefined && (state === "ready" || (step === "finish" && state !== "failed"))) return;
    const entry: Entry = {
      id: place === undefined ? event.id : this.entries[place]!.id,
      time: place === undefined ? event.timestamp : this.entries[place]!.time,
      kind: "phase",
      step: stepLabel(step),
      state,
      attempt: numberOf(event.attempt),
      message: state === "failed" || state === "ready" ? textOf(event.message) : "",
      until: ended ? event.timestamp : undefined,
    };
    if (place !== undefined) {
      this.entries[place] = entry;
      return;
    }
    this.phases.set(name, this.entries.length);
    this.entries.push(entry);
  }

  private builtin(event: LiveEvent, note: (text: string, detail: boolean) => void) {
    const base = { id: event.id, time: event.timestamp };
    const state = textOf(event.state);
    if (event.type === "agent.plan") {
      const steps = (Array.isArray(event.steps) ? event.steps : []) as PlanStep[];
      this.plan ??= this.entries.length;
      this.entries[this.plan] = { ...base, ...this.entries[this.plan], kind: "plan", steps };
    } else if (event.type === "agent.sleeping") {
      this.rest = this.entries.length;
      this.entries.push({ ...base, kind: "rest", until: textOf(event.until), over: false });
    } else if (event.type === "agent.thinking") note(`The agent asks its model, question ${numberOf(event.turn)}.`, true);
    else if (event.type === "agent.state") {
      this.wake(state);
      if (STATES[state]) note(STATES[state], true);
    } else note(`${capitalized(textOf(event.phase))} ${event.type.endsWith("started") ? "began" : "is done"}.`, false);
  }

  /** Whoever does something else than sleeping rests no more. */
  private wake(state: string) {
    const rest = this.rest === undefined ? undefined : this.entries[this.rest];
    if (state === "sleeping" || rest?.kind !== "rest") return;
    this.entries[this.rest!] = { ...rest, over: true };
    this.rest = undefined;
  }

  private git(event: LiveEvent) {
    const base = { id: event.id, time: event.timestamp };
    const operation = textOf(event.operation);
    if (event.status === "completed" && (operation === "commit" || operation === "push"))
      this.entries.push({ ...base, kind: "commit", text: operation === "commit" ? "Changes committed" : "Branch pushed" });
    if (event.status === "failed") this.entries.push({ ...base, kind: "error", text: `git ${operation} failed: ${textOf(event.message)}` });
  }
}

/** With `details` every entry; else calls of tools in a row are one line, and small notes are left out. */
export function shown(entries: Entry[], details: boolean): Shown[] {
  if (details) return entries;
  const out: Shown[] = [];
  for (const entry of entries) {
    if (entry.kind === "note" && entry.detail) continue;
    const last = out.at(-1);
    if (entry.kind !== "tool" && entry.kind !== "file") out.push(entry);
    else if (last?.kind === "tools") last.items.push(entry);
    else out.push({ id: entry.id, time: entry.time, kind: "tools", items: [entry] });
  }
  return out;
}

/** "bash: npm test": a call in one line. */
export function toolLine(entry: ToolEntry): string {
  if (entry.kind === "file") return `${entry.change || "changed"} ${entry.path}`;
  const input = entry.input && typeof entry.input === "object" ? Object.values(entry.input as Record<string, unknown>) : [];
  const first = input.find((value) => typeof value === "string" || typeof value === "number");
  return first === undefined ? entry.tool : `${entry.tool}: ${String(first).split("\n")[0]}`;
}
