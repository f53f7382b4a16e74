import { useQueryClient } from "@tanstack/react-query";
import { Flag, MoveRight, Trash2, UserRound, X } from "lucide-react";
import { useState } from "react";
import { keys } from "@/api/queries";
import { Button, IconButton } from "@/ui/button";
import { capitalized, plural } from "@/ui/format";
import { Menu } from "@/ui/menu";
import { done, failed } from "@/ui/toast";
import { changeTask, moveTask } from "./actions";
import { useBoard } from "./context";
import { COLUMNS, PRIORITIES, type Status, type Task } from "./model";

// Starting is asked for one by one: each start may need an answer.
const TARGETS = COLUMNS.filter((column) => column.status !== "in_progress");

/** What can be done with several tasks at once. */
export function BulkBar({ tasks, onClear }: { tasks: Task[]; onClear: () => void }) {
  const { agents, askDelete } = useBoard();
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const each = async (what: string, act: (task: Task) => Promise<unknown>) => {
    setBusy(true);
    const results = [];
    // One after the other: a hundred requests at once would be refused.
    for (const task of tasks) results.push(await act(task).then(() => null, (error: Error) => ({ task, error })));
    setBusy(false);
    await queries.invalidateQueries({ queryKey: keys.board });
    const problems = results.filter((result) => result !== null);
    if (problems.length < tasks.length) done(`${what}: ${plural(tasks.length - problems.length, "task")}`);
    for (const problem of problems.slice(0, 3)) failed(`#${problem.task.number} stays as it was`, problem.error);
    if (problems.length === 0) onClear();
  };
  const running = tasks.some((task) => task.status === "in_progress");
  return (
    <div
      role="toolbar"
      aria-label="Selected tasks"
      className="fixed inset-x-4 bottom-4 z-30 mx-auto flex w-fit max-w-full flex-wrap items-center gap-1 rounded-xl border border-line bg-panel p-1.5 shadow-float"
    >
      <span className="px-2 text-[13px] font-medium tabular-nums">{tasks.length} selected</span>
      <Menu
        label="Move to"
        trigger={
          <Button small busy={busy} disabled={running} icon={<MoveRight aria-hidden className="size-4" />}>
            Move to…
          </Button>
        }
        items={TARGETS.map((column) => ({
          label: column.title,
          onSelect: () => void each(`Moved to ${column.title}`, (task) => moveTask(task.id, { status: column.status as Status })),
        }))}
      />
      <Menu
        label="Agent"
        trigger={
          <Button small busy={busy} icon={<UserRound aria-hidden className="size-4" />}>
            Agent
          </Button>
        }
        items={[
          ...agents.map((agent) => ({
            label: agent.name,
            onSelect: () => void each(`Given to ${agent.name}`, (task) => changeTask(task.id, { agent_id: agent.id })),
          })),
          { label: "No agent", onSelect: () => void each("Taken from their agents", (task) => changeTask(task.id, { agent_id: null })) },
        ]}
      />
      <Menu
        label="Priority"
        trigger={
          <Button small busy={busy} icon={<Flag aria-hidden className="size-4" />}>
            Priority
          </Button>
        }
        items={PRIORITIES.map((priority) => ({
          label: capitalized(priority),
          onSelect: () => void each(`Priority ${priority}`, (task) => changeTask(task.id, { priority })),
        }))}
      />
      <Button small look="danger" disabled={busy || running} icon={<Trash2 aria-hidden className="size-4" />} onClick={() => askDelete(tasks)}>
        Delete
      </Button>
      <IconButton label="Clear the selection" small onClick={onClear}>
        <X aria-hidden className="size-4" />
      </IconButton>
    </div>
  );
}
