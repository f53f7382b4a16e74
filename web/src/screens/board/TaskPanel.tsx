import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Bot, Play, Square, Trash2, X } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { taskQuery } from "@/api/queries";
import { Button, buttonClass, IconButton } from "@/ui/button";
import { Sheet } from "@/ui/dialog";
import { useMedia } from "@/ui/media";
import { PrChip } from "@/components/PrChip";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Attempts } from "./Attempts";
import { useBoard } from "./context";
import { nameOf, type Task } from "./model";
import { useMove } from "./moves";
import { ShareBox } from "./ShareBox";
import { TaskFields } from "./TaskFields";

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="border-t border-line py-4">
      <h3 className="mb-2 text-[13px] font-semibold text-muted">{title}</h3>
      {children}
    </section>
  );
}

function Actions({ task }: { task: Task }) {
  const { askDelete } = useBoard();
  const { move } = useMove();
  const running = task.status === "in_progress";
  return (
    <div className="flex flex-wrap gap-2 pb-4">
      {running ? (
        <Button small icon={<Square aria-hidden className="size-4" />} onClick={() => void move(task, { status: "canceled" })}>
          Stop
        </Button>
      ) : (
        <Button small look="primary" icon={<Play aria-hidden className="size-4" />} onClick={() => void move(task, { status: "in_progress" })}>
          {task.status === "in_review" ? "Send back" : "Start"}
        </Button>
      )}
      <Link
        to="/work/$taskId"
        params={{ taskId: task.id }}
        className={buttonClass("plain", true)}
      >
        <Bot aria-hidden className="size-4" /> Agent work
      </Link>
      {!running && (
        <Button small look="ghost" icon={<Trash2 aria-hidden className="size-4" />} onClick={() => askDelete([task])}>
          Delete
        </Button>
      )}
    </div>
  );
}

function Content({ task }: { task: Task }) {
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 pb-3">
        <StatusBadge kind="task" state={task.status} />
        <PrChip url={task.pull_request_url} number={task.pull_request_number} state={task.pull_request_state} />
      </div>
      <Actions task={task} />
      {task.feedback && (
        <div className="mb-4 rounded-md bg-warn-soft px-3 py-2">
          <p className="text-xs font-semibold text-warn">Feedback for the agent</p>
          <p className="whitespace-pre-wrap">{task.feedback}</p>
        </div>
      )}
      <TaskFields key={task.id} task={task} />
      <Section title="Attempts">
        <Attempts task={task} />
      </Section>
      <Section title="Share">
        <ShareBox taskId={task.id} />
      </Section>
    </>
  );
}

/** A task beside the board; on a small screen over it. */
export function TaskPanel({ id, onClose }: { id: string; onClose: () => void }) {
  const { around } = useBoard();
  const query = useQuery({ ...taskQuery(id), placeholderData: around.tasks.get(id) });
  const beside = useMedia("(min-width: 1024px)");
  const panel = useRef<HTMLElement>(null);
  const task = query.data;
  const title = task ? nameOf(task) : "Task";
  // The keyboard goes where the eye goes, and back to the card afterwards.
  useEffect(() => {
    if (beside) panel.current?.focus();
    return () => document.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"]`)?.focus();
  }, [id, beside]);
  const content = query.error ? (
    <ErrorState error={query.error} onRetry={() => void query.refetch()} />
  ) : task ? (
    <Content task={task} />
  ) : (
    <SkeletonRows />
  );
  if (!beside)
    return (
      <Sheet open onClose={onClose} title={title}>
        {content}
      </Sheet>
    );
  return (
    <aside
      ref={panel}
      tabIndex={-1}
      aria-label={title}
      className="flex w-[26rem] shrink-0 flex-col border-l border-line bg-panel outline-none xl:w-[30rem]"
    >
      <header className="flex items-start gap-3 border-b border-line px-5 py-3">
        <h2 className="min-w-0 flex-1 text-base font-semibold break-words">{title}</h2>
        <IconButton label="Close the panel" small onClick={onClose}>
          <X aria-hidden className="size-4" />
        </IconButton>
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto px-5 py-4">{content}</div>
    </aside>
  );
}
