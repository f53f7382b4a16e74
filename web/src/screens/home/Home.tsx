import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Play, Plus, RotateCw } from "lucide-react";
import { json } from "@/api/client";
import { boardQuery, keys } from "@/api/queries";
import { useShell } from "@/shell/state";
import { Button, IconButton } from "@/ui/button";
import { Card, Page } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Ago } from "@/ui/time";
import { failed } from "@/ui/toast";
import { KanbanSquare } from "lucide-react";
import { healthQuery } from "../health/queries";
import { Checklist } from "./Checklist";
import { Connect } from "./Connect";

/** Runs the demo task and shows it at work. Needs no key. */
function useDemo() {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => json<{ task_id: string }>("/api/v1/demo", { method: "POST" }),
    onSuccess: ({ task_id }) => navigate({ to: "/work/$taskId", params: { taskId: task_id } }),
    onError: (error) => failed("The demo task could not be started", error),
  });
}

function RecentTasks() {
  const board = useQuery(boardQuery);
  const demo = useDemo();
  const start = (
    <Button look="primary" busy={demo.isPending} icon={<Play aria-hidden className="size-4" />} onClick={() => demo.mutate()}>
      Run the demo task
    </Button>
  );
  if (board.isPending) return <SkeletonRows rows={4} />;
  if (board.isError) return <ErrorState error={board.error} onRetry={() => void board.refetch()} />;
  const tasks = board.data.columns
    .flatMap((column) => column.tasks)
    .sort((a, b) => b.updated_at.localeCompare(a.updated_at))
    .slice(0, 8);
  if (tasks.length === 0)
    return (
      <EmptyState icon={KanbanSquare} title="No tasks yet" action={start}>
        The demo shows an agent at work in its own sandbox. It needs no key and no repository.
      </EmptyState>
    );
  return (
    <>
      <ul className="divide-y divide-line">
        {tasks.map((task) => (
          <li key={task.id}>
            <Link
              to="/work/$taskId"
              params={{ taskId: task.id }}
              className="flex items-center gap-3 px-4 py-2 hover:bg-hover"
            >
              <span className="w-10 shrink-0 text-muted tabular-nums">#{task.number}</span>
              <span className="min-w-0 flex-1 truncate">{task.title}</span>
              <span className="shrink-0 sm:w-28">
                <StatusBadge kind="task" state={task.status} />
              </span>
              <span className="hidden w-20 text-right text-xs text-muted sm:inline">
                <Ago time={task.updated_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
      <div className="flex flex-wrap gap-2 border-t border-line px-4 py-3">
        <Button icon={<Plus aria-hidden className="size-4" />} onClick={() => useShell.setState({ newTask: true })}>
          New task
        </Button>
        <Button busy={demo.isPending} icon={<Play aria-hidden className="size-4" />} onClick={() => demo.mutate()}>
          Run the demo task
        </Button>
      </div>
    </>
  );
}

export default function Home() {
  const queries = useQueryClient();
  const health = useQuery(healthQuery);
  return (
    <Page title="Home">
      <div className="grid gap-4 lg:grid-cols-2">
        <Card
          title="Is this server ready?"
          actions={
            <IconButton
              label="Check again"
              small
              busy={health.isFetching}
              onClick={() => void queries.invalidateQueries({ queryKey: keys.health })}
            >
              <RotateCw aria-hidden className="size-4" />
            </IconButton>
          }
        >
          <Checklist health={health} />
        </Card>
        <Card title="Latest tasks">
          <RecentTasks />
        </Card>
        <Card title="Use it with the E2B SDKs" className="lg:col-span-2">
          <Connect />
        </Card>
      </div>
    </Page>
  );
}
