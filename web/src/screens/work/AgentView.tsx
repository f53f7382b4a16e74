import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Bot, Pause, Play, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, data, type Schemas } from "@/api/client";
import { agentsQuery, keys } from "@/api/queries";
import { useShell } from "@/shell/state";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Ago } from "@/ui/time";
import { failed } from "@/ui/toast";
import { useWorkTitle } from "./title";

/** An agent that has no task now: what it is, and what it did. */
export function AgentView({ id }: { id: string }) {
  const agents = useQuery(agentsQuery);
  const agent = agents.data?.find((each) => each.id === id);
  const tasks = useQuery({
    queryKey: [...keys.tasks, "of", id],
    queryFn: async () => (await data(api.GET("/api/v1/tasks", { params: { query: { agent_id: id, limit: 50 } as never } }))).tasks,
  });
  useWorkTitle(agent?.name ?? "Agent work", "");
  if (agents.isPending) return <SkeletonRows />;
  if (agents.isError && !agents.data) return <ErrorState screen error={agents.error} onRetry={() => void agents.refetch()} />;
  if (!agent) return <EmptyState icon={Bot} title="This agent does not exist any more" />;
  return (
    <div className="mx-auto w-full max-w-3xl px-4 py-3">
      <header className="flex flex-wrap items-center gap-2">
        <h1 className="text-base font-semibold">{agent.name}</h1>
        <StatusBadge kind="agent" state={agent.status} />
        <Actions agent={agent} />
      </header>
      <dl className="mt-3 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt className="text-muted">Adapter</dt>
        <dd>{agent.adapter}</dd>
        <dt className="text-muted">Role</dt>
        <dd>{agent.role}</dd>
        {Object.entries(agent.config).map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name.replaceAll("_", " ")}</dt>
            <dd className="min-w-0 truncate font-mono text-xs leading-5">{typeof value === "string" ? value : JSON.stringify(value)}</dd>
          </div>
        ))}
      </dl>
      <h2 className="mt-5 mb-1 text-xs font-semibold text-muted">Tasks</h2>
      {tasks.isPending ? (
        <SkeletonRows rows={3} />
      ) : tasks.isError && !tasks.data ? (
        <ErrorState error={tasks.error} onRetry={() => void tasks.refetch()} />
      ) : tasks.data.length === 0 ? (
        <p className="text-muted">It has not worked on a task yet.</p>
      ) : (
        <ul className="divide-y divide-line rounded-lg border border-line bg-panel">
          {tasks.data.map((task) => (
            <li key={task.id}>
              <Link to="/work/$taskId" params={{ taskId: task.id }} className="flex min-h-9 items-center gap-2 px-3 py-1.5 hover:bg-hover">
                <span className="text-xs text-muted">#{task.number}</span>
                <span className="min-w-0 flex-1 truncate">{task.title}</span>
                <span className="text-xs text-muted">
                  <Ago time={task.updated_at} />
                </span>
                <StatusBadge kind="task" state={task.status} />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Actions({ agent }: { agent: Schemas["Agent"] }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [asking, setAsking] = useState(false);
  const params = { params: { path: { id: agent.id } } };
  const refresh = () => queries.invalidateQueries({ queryKey: keys.agents });
  const paused = agent.status === "paused";
  const pause = useMutation({
    mutationFn: () => data(api.PATCH("/api/v1/agents/{id}", { ...params, body: { paused: !paused } as Schemas["AgentChange"] })),
    onError: (error) => failed(`${agent.name} was not changed`, error),
    onSettled: refresh,
  });
  const remove = useMutation({
    mutationFn: () => data(api.DELETE("/api/v1/agents/{id}", params)),
    onError: (error) => failed(`${agent.name} was not deleted`, error),
    onSuccess: () => navigate({ to: "/work" }),
    onSettled: refresh,
  });
  return (
    <div className="ml-auto flex flex-wrap gap-2">
      <Button small look="primary" icon={<Plus aria-hidden className="size-4" />} onClick={() => useShell.setState({ newTask: true })}>
        New task
      </Button>
      <Button small busy={pause.isPending} icon={paused ? <Play aria-hidden className="size-4" /> : <Pause aria-hidden className="size-4" />} onClick={() => pause.mutate()}>
        {paused ? "Resume" : "Pause"}
      </Button>
      <Button small icon={<Trash2 aria-hidden className="size-4" />} onClick={() => setAsking(true)}>
        Delete
      </Button>
      <ConfirmDialog
        open={asking}
        onClose={() => setAsking(false)}
        onConfirm={() => remove.mutate()}
        busy={remove.isPending}
        title={`Delete the agent ${agent.name}?`}
        lost="Its configuration is gone. Its tasks stay."
        action="Delete"
      />
    </div>
  );
}
