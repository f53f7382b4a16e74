import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Bot, MessagesSquare, Plus } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { Schemas } from "@/api/client";
import { agentsQuery, boardQuery } from "@/api/queries";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/classes";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { lookOf, type StateKind } from "@/ui/status";
import { NewAgentDialog } from "./NewAgentDialog";
import { NewSessionDialog } from "./NewSessionDialog";
import { sessionsQuery } from "./queries";

const RECENT = 12;
const ROW = "flex min-h-9 items-start gap-2 rounded-md px-2 py-1.5 hover:bg-hover";
const CHOSEN = "bg-accent-soft";

export interface Chosen {
  task?: string;
  session?: string;
  agent?: string;
}

/** Who works, and on what; conversations; the newest tasks. */
export function SideList({ chosen }: { chosen: Chosen }) {
  const [dialog, setDialog] = useState<"agent" | "session" | null>(null);
  const board = useQuery(boardQuery);
  const tasks = board.data?.columns.flatMap((column) => column.tasks) ?? [];
  return (
    <nav aria-label="Agents and sessions" className="flex h-full flex-col gap-4 overflow-y-auto p-2">
      <Section title="Agents" add="New agent" onAdd={() => setDialog("agent")}>
        <Agents tasks={tasks} chosen={chosen} />
      </Section>
      <Section title="Sessions" add="New session" onAdd={() => setDialog("session")}>
        <Sessions chosen={chosen} />
      </Section>
      <Section title="Recent tasks">
        {board.isPending ? (
          <SkeletonRows rows={3} />
        ) : board.isError && !board.data ? (
          <ErrorState error={board.error} onRetry={() => void board.refetch()} />
        ) : (
          <Tasks tasks={tasks} chosen={chosen} />
        )}
      </Section>
      {dialog === "agent" && <NewAgentDialog onClose={() => setDialog(null)} />}
      {dialog === "session" && <NewSessionDialog onClose={() => setDialog(null)} />}
    </nav>
  );
}

function Section({ title, add, onAdd, children }: { title: string; add?: string; onAdd?: () => void; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <div className="flex h-8 items-center px-2">
        <h2 className="text-xs font-semibold text-muted">{title}</h2>
        {add && (
          <IconButton small label={add} className="ml-auto" onClick={onAdd}>
            <Plus aria-hidden className="size-4" />
          </IconButton>
        )}
      </div>
      {children}
    </section>
  );
}

const TONES: Record<string, string> = {
  neutral: "text-muted",
  ok: "text-ok",
  warn: "text-warn",
  bad: "text-bad",
  info: "text-info",
  violet: "text-violet",
};

/** A state as picture and word, small. */
function Mark({ kind, state }: { kind: StateKind; state: string }) {
  const look = lookOf(kind, state);
  return (
    <span className={cx("inline-flex shrink-0 items-center gap-1 text-xs", TONES[look.tone])}>
      <look.icon aria-hidden className={cx("size-3.5", look.spin && "animate-spin")} />
      {look.label}
    </span>
  );
}

const none = (text: string) => <p className="px-2 py-1 text-xs text-muted">{text}</p>;

function Agents({ tasks, chosen }: { tasks: Schemas["Task"][]; chosen: Chosen }) {
  const agents = useQuery(agentsQuery);
  if (agents.isPending) return <SkeletonRows rows={2} />;
  if (agents.error) return <ErrorState error={agents.error} onRetry={() => void agents.refetch()} />;
  if (agents.data.length === 0) return none("No agents yet.");
  return (
    <ul>
      {agents.data.map((agent) => {
        const task = tasks.find((each) => each.id === agent.current_task_id);
        const inside = (
          <>
            <Bot aria-hidden className="mt-0.5 size-4 shrink-0 text-muted" />
            <span className="min-w-0 flex-1">
              <span className="flex items-center gap-2">
                <span className="min-w-0 flex-1 truncate font-medium">{agent.name}</span>
                <Mark kind="agent" state={agent.status} />
              </span>
              {agent.current_task_id && <span className="block truncate text-xs text-muted">{task ? `#${task.number} ${task.title}` : "A task"}</span>}
            </span>
          </>
        );
        return (
          <li key={agent.id}>
            {agent.current_task_id ? (
              <Link to="/work/$taskId" params={{ taskId: agent.current_task_id }} className={cx(ROW, chosen.task === agent.current_task_id && CHOSEN)}>
                {inside}
              </Link>
            ) : (
              <Link to="/work" search={{ agent: agent.id }} className={cx(ROW, chosen.agent === agent.id && CHOSEN)}>
                {inside}
              </Link>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Sessions({ chosen }: { chosen: Chosen }) {
  const sessions = useQuery(sessionsQuery);
  if (sessions.isPending) return <SkeletonRows rows={2} />;
  if (sessions.error) return <ErrorState error={sessions.error} onRetry={() => void sessions.refetch()} />;
  if (sessions.data.length === 0) return none("No sessions yet.");
  return (
    <ul>
      {sessions.data.map((session) => (
        <li key={session.id}>
          <Link to="/work/session/$sessionId" params={{ sessionId: session.id }} className={cx(ROW, chosen.session === session.id && CHOSEN)}>
            <MessagesSquare aria-hidden className="mt-0.5 size-4 shrink-0 text-muted" />
            <span className="flex min-w-0 flex-1 items-center gap-2">
              <span className="min-w-0 flex-1 truncate">{session.title || "Untitled"}</span>
              <Mark kind="session" state={session.status} />
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

function Tasks({ tasks, chosen }: { tasks: Schemas["Task"][]; chosen: Chosen }) {
  const recent = tasks
    .filter((task) => task.status !== "backlog")
    .sort((a, b) => b.updated_at.localeCompare(a.updated_at))
    .slice(0, RECENT);
  if (recent.length === 0) return none("No tasks yet.");
  return (
    <ul>
      {recent.map((task) => (
        <li key={task.id}>
          <Link to="/work/$taskId" params={{ taskId: task.id }} className={cx(ROW, chosen.task === task.id && CHOSEN)}>
            <span className="mt-0.5 shrink-0 text-xs text-muted tabular-nums">#{task.number}</span>
            <span className="min-w-0 flex-1">
              <span className="block truncate">{task.title}</span>
              <Mark kind="task" state={task.status} />
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
