import { useDraggable, useDroppable } from "@dnd-kit/core";
import { Ban, CircleAlert, Clock, GitBranch, Hand, Pause } from "lucide-react";
import type { MouseEvent } from "react";
import { Stepper } from "@/components/Stepper";
import { Badge } from "@/ui/badge";
import { cx } from "@/ui/classes";
import { dollars, repoName } from "@/ui/format";
import { PrChip } from "@/components/PrChip";
import { Elapsed } from "@/ui/time";
import { useBoard } from "./context";
import { cardId, type Target } from "./dnd";
import { stateOf, type Task } from "./model";
import { useMoves } from "./moves";
import { Avatar, Priority } from "./parts";
import { useSteps } from "./steps";
import { TaskMenu } from "./TaskMenu";

const BOX = "relative rounded-lg border bg-panel px-3 py-2.5 text-left";

/** What a task's state is beyond its column. */
export function StateBadge({ task }: { task: Task }) {
  const { around } = useBoard();
  const refused = useMoves((state) => state.refused[task.id]);
  const state = stateOf(task, around);
  if (refused) return <Badge tone="bad" icon={CircleAlert}>Not moved</Badge>;
  if (state === "needs_you") return <Badge tone="info" icon={Hand}>Needs you</Badge>;
  if (state === "queued") return <Badge icon={Clock}>Waits for an agent, #{task.queue_position}</Badge>;
  if (state === "paused") return <Badge tone="warn" icon={Pause}>Paused</Badge>;
  if (state === "blocked") return <Badge tone="warn" icon={Ban}>Blocked</Badge>;
  if (state === "failed") return <Badge tone="bad" icon={CircleAlert}>Failed</Badge>;
  return null;
}

function Running({ task }: { task: Task }) {
  const attempt = useSteps(task);
  if (!attempt) return null;
  return (
    <div className="mt-2 flex items-center gap-2 text-xs text-muted">
      <div className="min-w-0 flex-1">
        <Stepper steps={attempt.steps} compact />
      </div>
      {attempt.startedAt && <Elapsed from={attempt.startedAt} />}
    </div>
  );
}

/** What is on a card, without what makes it move. */
export function CardFace({ task }: { task: Task }) {
  const { agents, around, costs } = useBoard();
  const calm = ["idle", "running"].includes(stateOf(task, around));
  const cost = costs.get(task.id);
  return (
    <>
      {task.status === "in_progress" && <Running task={task} />}
      <div className="mt-2 flex min-h-5 flex-wrap items-center gap-x-2 gap-y-1 text-xs text-muted">
        <Priority value={task.priority} />
        <Avatar agent={agents.find((each) => each.id === task.agent_id)} />
        <StateBadge task={task} />
        <span className="relative z-10 empty:hidden">
          <PrChip url={task.pull_request_url} number={task.pull_request_number} state={task.pull_request_state} />
        </span>
        {/* Where there is more to say, the panel has the branch. */}
        {task.git_branch && calm && !task.pull_request_number ? (
          <span className="inline-flex items-center gap-1" title={`Branch ${task.git_branch}`}>
            <GitBranch aria-hidden className="size-3 shrink-0" />
            <span className="max-w-28 truncate font-mono text-[11px]">{task.git_branch}</span>
          </span>
        ) : (
          task.repo_url && <span className="max-w-32 truncate">{repoName(task.repo_url)}</span>
        )}
        {cost !== undefined && cost > 0 && (
          <span className="ml-auto hidden tabular-nums group-focus-within:inline group-hover:inline">{dollars(cost)}</span>
        )}
      </div>
    </>
  );
}

/** A task that can be opened, dragged, selected. The title is the button; the rest of the card belongs to it. */
export function Card({ task }: { task: Task }) {
  const { open, selected, openTask, select } = useBoard();
  const refused = useMoves((state) => Boolean(state.refused[task.id]));
  const target: Target = { status: task.status, before: task.id };
  const drag = useDraggable({ id: task.id, data: task as never, disabled: selected.size > 0 });
  const drop = useDroppable({ id: cardId(task.id), data: target as never });
  const chosen = selected.has(task.id);
  const press = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) select(task.id, event.shiftKey);
    else openTask(task.id);
  };
  return (
    <li
      ref={(element) => {
        drag.setNodeRef(element);
        drop.setNodeRef(element);
      }}
      {...drag.listeners}
      className={cx(
        "group touch-manipulation list-none select-none",
        BOX,
        chosen || open === task.id ? "border-accent" : refused ? "border-bad" : "border-line hover:border-line-strong",
        chosen && "bg-accent-soft",
        drag.isDragging && "opacity-40",
        drop.isOver && "before:absolute before:inset-x-0 before:-top-[5px] before:h-0.5 before:rounded before:bg-accent",
      )}
    >
      <div className="flex items-start gap-2">
        <button
          type="button"
          ref={drag.setActivatorNodeRef}
          data-row={task.id}
          data-status={task.status}
          aria-describedby={drag.attributes["aria-describedby"]}
          aria-pressed={selected.size > 0 ? chosen : undefined}
          onClick={press}
          className="dense min-w-0 flex-1 text-left font-medium outline-none after:absolute after:inset-0 after:rounded-lg focus-visible:after:outline-2 focus-visible:after:outline-offset-1 focus-visible:after:outline-accent"
        >
          <span className="mr-1.5 text-xs font-normal text-muted tabular-nums">#{task.number}</span>
          <span className="line-clamp-3 inline break-words">{task.title}</span>
        </button>
        <span className="relative z-10 -mt-1 -mr-1.5">
          <TaskMenu task={task} />
        </span>
      </div>
      <CardFace task={task} />
    </li>
  );
}

/** The card that follows the pointer. */
export function Ghost({ task }: { task: Task }) {
  return (
    <div className={cx(BOX, "cursor-grabbing border-accent shadow-float")}>
      <span className="mr-1.5 text-xs text-muted">#{task.number}</span>
      <span className="font-medium">{task.title}</span>
      <CardFace task={task} />
    </div>
  );
}
