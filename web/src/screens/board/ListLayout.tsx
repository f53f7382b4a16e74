import { useState } from "react";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { Tick } from "@/ui/field";
import { repoName } from "@/ui/format";
import { PrChip } from "@/components/PrChip";
import { StatusBadge } from "@/ui/status";
import { Ago } from "@/ui/time";
import { StateBadge } from "./Card";
import { useBoard } from "./context";
import { type Grouping, groupsOf, type Task } from "./model";
import { Avatar, Priority } from "./parts";
import { TaskMenu } from "./TaskMenu";

const PAGE = 100;

function Row({ task, byStatus }: { task: Task; byStatus: boolean }) {
  const { agents, open, selected, openTask, select } = useBoard();
  const agent = agents.find((each) => each.id === task.agent_id);
  return (
    <li
      className={cx(
        "group relative flex min-h-10 items-center gap-3 border-b border-line px-4 hover:bg-hover max-sm:gap-1.5 max-sm:px-2",
        (open === task.id || selected.has(task.id)) && "bg-accent-soft",
      )}
    >
      <Tick
        label={`Select #${task.number}`}
        checked={selected.has(task.id)}
        onChange={(event) => select(task.id, (event.nativeEvent as MouseEvent).shiftKey)}
        className="relative z-10 shrink-0"
      />
      <Priority value={task.priority} />
      <span className="shrink-0 text-xs text-muted tabular-nums sm:w-10">#{task.number}</span>
      <button
        type="button"
        data-row={task.id}
        data-status={task.status}
        onClick={(event) => (event.ctrlKey || event.metaKey || event.shiftKey ? select(task.id, event.shiftKey) : openTask(task.id))}
        className="dense min-w-0 flex-1 py-2 text-left max-sm:line-clamp-2 sm:truncate outline-none after:absolute after:inset-0 focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-accent"
      >
        {task.title}
      </button>
      <span className="hidden shrink-0 sm:block">
        {/* The status says that it failed. */}
        {task.status !== "failed" && <StateBadge task={task} />}
      </span>
      <span className="relative z-10 shrink-0">
        <PrChip url={task.pull_request_url} number={task.pull_request_number} state={task.pull_request_state} />
      </span>
      <span className={cx("shrink-0 sm:w-28", byStatus && "max-sm:hidden")}>
        <StatusBadge kind="task" state={task.status} />
      </span>
      <span className="hidden w-32 shrink-0 truncate text-xs text-muted lg:block">{repoName(task.repo_url)}</span>
      <span className="hidden w-5 shrink-0 sm:block">
        <Avatar agent={agent} />
      </span>
      <span className="hidden w-24 shrink-0 text-right text-xs text-muted lg:block">
        <Ago time={task.updated_at} />
      </span>
      <span className="relative z-10 shrink-0">
        <TaskMenu task={task} />
      </span>
    </li>
  );
}

/** The same tasks as lines, by groups. */
export function ListLayout({ tasks, by, missing }: {
  tasks: Task[];
  by: Grouping;
  /** So many more are not read yet. */
  missing: number;
}) {
  const { agents, loadRest, loadingRest } = useBoard();
  const [shown, setShown] = useState(PAGE);
  const groups = groupsOf(tasks.slice(0, shown), by, agents, repoName);
  return (
    <div data-board className="h-full overflow-y-auto border-t border-line pb-8">
      {groups.map(([label, members]) => (
        <section key={label} aria-label={label}>
          <h2 className="sticky top-0 z-20 flex items-center gap-2 border-b border-line bg-sunken px-4 py-1.5 text-[13px] font-semibold first-letter:uppercase">
            {label} <span className="font-normal text-muted tabular-nums">{members.length}</span>
          </h2>
          <ul className="bg-panel">
            {members.map((task) => (
              <Row key={task.id} task={task} byStatus={by === "status"} />
            ))}
          </ul>
        </section>
      ))}
      {tasks.length > shown ? (
        <Button look="ghost" className="mt-3 ml-4" onClick={() => setShown(shown + PAGE)}>
          Show {Math.min(PAGE, tasks.length - shown)} more
        </Button>
      ) : (
        missing > 0 && (
          <Button look="ghost" className="mt-3 ml-4" busy={loadingRest} onClick={() => loadRest()}>
            Load {missing} more
          </Button>
        )
      )}
    </div>
  );
}
