import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Bot, Hammer, KanbanSquare, MessageSquare } from "lucide-react";
import { agentsQuery, boardQuery } from "@/api/queries";
import { sessionsQuery } from "../work/queries";
import type { Box } from "./boxes";

const LINK = "inline-flex max-w-full min-w-0 items-center gap-1.5 hover:underline";

function TaskName({ id }: { id: string }) {
  const task = useQuery(boardQuery).data?.columns.flatMap((column) => column.tasks).find((each) => each.id === id);
  return <span className="truncate">{task ? `#${task.number} ${task.title}` : "Task"}</span>;
}

function SessionName({ id }: { id: string }) {
  const title = useQuery(sessionsQuery).data?.find((each) => each.id === id)?.title;
  return <span className="truncate">{title || "Session"}</span>;
}

/** For whom a sandbox was made, as a link to it. */
export function Owner({ owner }: { owner: Box["owner"] }) {
  const agent = useQuery(agentsQuery).data?.find((each) => each.id === owner.agentId);
  const by = agent && (
    <span className="inline-flex items-center gap-1 text-xs text-muted">
      <Bot aria-hidden className="size-3.5" /> {agent.name}
    </span>
  );
  if (owner.kind === "task" && owner.id)
    return (
      <span className="flex min-w-0 flex-col">
        <Link to="/work/$taskId" params={{ taskId: owner.id }} className={LINK}>
          <KanbanSquare aria-hidden className="size-4 shrink-0" /> <TaskName id={owner.id} />
        </Link>
        {by}
      </span>
    );
  if (owner.kind === "session" && owner.id)
    return (
      <Link to="/work/session/$sessionId" params={{ sessionId: owner.id }} className={LINK}>
        <MessageSquare aria-hidden className="size-4 shrink-0" /> <SessionName id={owner.id} />
      </Link>
    );
  if (owner.kind === "build" && owner.id)
    return (
      <Link to="/builds/$buildId" params={{ buildId: owner.id }} className={LINK}>
        <Hammer aria-hidden className="size-4 shrink-0" /> Build
      </Link>
    );
  return by ?? <span className="text-muted">You</span>;
}
