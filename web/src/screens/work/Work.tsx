// The main screen: who works, what they do, and what comes of it.
import { useQuery } from "@tanstack/react-query";
import { Navigate, useParams } from "@tanstack/react-router";
import { Coffee, Plus } from "lucide-react";
import { useState } from "react";
import { agentsQuery, boardQuery } from "@/api/queries";
import { useShell } from "@/shell/state";
import { Button } from "@/ui/button";
import { useTitle } from "@/ui/page";
import { Splitter } from "@/ui/splitter";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { AgentView } from "./AgentView";
import { ConnectionBanner } from "./Banner";
import { THREE_ZONES } from "./Layout";
import { useMedia } from "@/ui/media";
import { useUrl } from "@/ui/url";
import { NewAgentDialog } from "./NewAgentDialog";
import { SessionView } from "./SessionView";
import { type Chosen, SideList } from "./SideList";
import { TaskView } from "./TaskView";

export default function Work() {
  const { taskId, sessionId } = useParams({ strict: false }) as { taskId?: string; sessionId?: string };
  const [search] = useUrl();
  const wide = useMedia(THREE_ZONES);
  const chosen: Chosen = { task: taskId, session: sessionId, agent: taskId || sessionId ? undefined : search.agent };
  // The key: nothing of one task may be left when the next one is shown.
  const view = taskId ? (
    <TaskView key={taskId} id={taskId} />
  ) : sessionId ? (
    <SessionView key={sessionId} id={sessionId} />
  ) : search.agent ? (
    <AgentView key={search.agent} id={search.agent} />
  ) : null;
  if (!wide) return view ?? <Overview chosen={chosen} />;
  return (
    <Splitter
      name="agents"
      initial={20}
      min={14}
      max={35}
      left={<div className="h-full bg-panel">{<SideList chosen={chosen} />}</div>}
      right={<div className="h-full min-h-0 overflow-y-auto">{view ?? <Nothing />}</div>}
    />
  );
}

/** On a small screen the list is a screen of its own. */
function Overview({ chosen }: { chosen: Chosen }) {
  useTitle("Agent work");
  return (
    <div className="flex h-full flex-col">
      <ConnectionBanner />
      <h1 className="px-4 pt-3 text-lg font-semibold">Agent work</h1>
      <div className="min-h-0 flex-1">
        <SideList chosen={chosen} />
      </div>
    </div>
  );
}

/** Nothing is chosen: what runs, else how to begin. */
function Nothing() {
  useTitle("Agent work");
  const board = useQuery(boardQuery);
  const [search] = useUrl();
  const agents = useQuery(agentsQuery);
  const [making, setMaking] = useState(false);
  const running = board.data?.columns.flatMap((column) => column.tasks).find((task) => task.status === "in_progress");
  if (running && !search.list) return <Navigate to="/work/$taskId" params={{ taskId: running.id }} replace />;
  if (board.isPending || agents.isPending) return <SkeletonRows />;
  const lost = [board, agents].find((query) => query.isError && !query.data);
  if (lost) return <ErrorState screen error={lost.error} onRetry={() => void lost.refetch()} />;
  const alone = agents.data?.length === 0;
  return (
    <>
      <ConnectionBanner />
      <h1 className="sr-only">Agent work</h1>
      <EmptyState
        icon={Coffee}
        title={running ? "Choose what to look at" : "Nothing is running"}
        action={
          alone ? (
            <Button look="primary" icon={<Plus aria-hidden className="size-4" />} onClick={() => setMaking(true)}>
              New agent
            </Button>
          ) : (
            <Button look="primary" icon={<Plus aria-hidden className="size-4" />} onClick={() => useShell.setState({ newTask: true })}>
              New task
            </Button>
          )
        }
      >
        {alone
          ? "Tasks are done by agents. Create one first, or run the demo task on the home page."
          : "Drag a task to In progress on the board, write a new one, or begin a session with the + on the left."}
      </EmptyState>
      {making && <NewAgentDialog onClose={() => setMaking(false)} />}
    </>
  );
}
