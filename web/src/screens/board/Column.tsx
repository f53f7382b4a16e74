import { useDroppable } from "@dnd-kit/core";
import { useState } from "react";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { plural } from "@/ui/format";
import { Tip } from "@/ui/tip";
import { Card } from "./Card";
import { useBoard } from "./context";
import { columnId, type Target } from "./dnd";
import { type BoardData, type Status, type Task, titleOf } from "./model";

const PAGE = 50;

/** "2 / 3": an agent does one task at a time, so the agents are the limit. */
export function Wip({ wip }: { wip: BoardData["wip"] }) {
  if (wip.agents === 0) return null;
  const busy = wip.agents - wip.free_agents;
  return (
    <Tip text={`${busy} of ${plural(wip.agents, "agent")} at work. An agent does one task at a time.`}>
      <span className={cx("ml-auto text-xs tabular-nums", wip.free_agents === 0 ? "text-warn" : "text-muted")}>
        {busy} / {wip.agents} <span className="sr-only">agents </span>busy
      </span>
    </Tip>
  );
}

const EMPTY: Partial<Record<Status, string>> = {
  pending: "New tasks come here.",
  in_progress: "Drag a task here to start it.",
  in_review: "Finished work waits here.",
  done: "Nothing is done yet.",
};

export function Column({ status, tasks, count, missing, filtered, wip, bare }: {
  status: Status;
  tasks: Task[];
  /** All tasks of the column on the server. */
  count: number;
  /** So many of them are not read yet. */
  missing: number;
  filtered: boolean;
  wip?: BoardData["wip"];
  /** Without its heading: the switch above says which one it is. */
  bare?: boolean;
}) {
  const [shown, setShown] = useState(PAGE);
  const { loadRest, loadingRest } = useBoard();
  const target: Target = { status };
  const drop = useDroppable({ id: columnId(status), data: target as never });
  const title = titleOf(status);
  return (
    <section
      ref={drop.setNodeRef}
      aria-label={title}
      data-column={status}
      data-rows
      className={cx(
        "flex min-h-0 min-w-64 flex-1 flex-col rounded-lg border border-transparent bg-sunken",
        drop.isOver && "border-accent",
      )}
    >
      {!bare && (
        <header className="flex items-center gap-2 px-3 pt-2.5 pb-1.5">
          <h2 className="text-[13px] font-semibold">{title}</h2>
          <span className="text-xs text-muted tabular-nums">{filtered ? `${tasks.length} of ${count}` : count}</span>
          {wip && <Wip wip={wip} />}
        </header>
      )}
      <ul className="flex min-h-0 flex-1 flex-col gap-2 overflow-y-auto px-2 pt-1 pb-3">
        {tasks.slice(0, shown).map((task) => (
          <Card key={task.id} task={task} />
        ))}
        {tasks.length === 0 && (
          <li className="px-2 py-6 text-center text-[13px] text-muted">
            {filtered && count > 0 ? "Nothing matches." : (EMPTY[status] ?? "Empty.")}
          </li>
        )}
        {tasks.length > shown && (
          <li>
            <Button look="ghost" small className="w-full" onClick={() => setShown(shown + PAGE)}>
              Show {Math.min(PAGE, tasks.length - shown)} more
            </Button>
          </li>
        )}
        {tasks.length <= shown && missing > 0 && (
          <li>
            <Button look="ghost" small className="w-full" busy={loadingRest} onClick={() => loadRest(status)}>
              Load {missing} more
            </Button>
          </li>
        )}
      </ul>
    </section>
  );
}
