// What was done in a sandbox with git, as rows of a table.
import type { Schemas } from "@/api/client";
import type { LiveEvent } from "@/live/stream";
import { type Folder, numberOf, textOf } from "../work/fold";

export interface Operation {
  id: string;
  name: string;
  state: "running" | "done" | "failed";
  at: string;
  ms?: number;
  command?: string;
  exitCode?: number;
  error?: string;
}

const STATES: Record<string, Operation["state"]> = { completed: "done", failed: "failed" };

/** Those of a task are kept with their commands. */
export const fromRow = (row: Schemas["GitOperation"]): Operation => ({
  id: row.id,
  name: row.operation,
  state: STATES[row.status] ?? "running",
  at: row.created_at,
  ms: row.duration_ms,
  command: row.command,
  exitCode: row.exit_code,
  error: row.error_message,
});

/** Of other sandboxes only events tell. */
export class OperationFolder implements Folder<Operation[]> {
  private operations: Operation[] = [];

  state() {
    return this.operations.slice();
  }

  add(event: LiveEvent) {
    if (event.type !== "git_operation") return;
    const name = textOf(event.operation);
    const status = textOf(event.status);
    const begun = this.operations.findLastIndex((each) => each.name === name && each.state === "running");
    if (begun < 0 || status === "started") this.operations.push({ id: String(event.id), name, state: "running", at: event.timestamp });
    const place = begun < 0 || status === "started" ? this.operations.length - 1 : begun;
    const state = STATES[status];
    if (state)
      this.operations[place] = {
        ...this.operations[place]!,
        state,
        ms: event.duration_ms === undefined ? undefined : numberOf(event.duration_ms),
        error: state === "failed" ? textOf(event.message) : undefined,
      };
  }
}
