import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { executionsQuery } from "@/api/queries";
import { Skeleton } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Ago, Elapsed } from "@/ui/time";
import { useBoard } from "./context";
import type { Task } from "./model";

/** What was tried, newest first. */
export function Attempts({ task }: { task: Task }) {
  const { agents } = useBoard();
  const query = useQuery(executionsQuery(task.id));
  if (query.error) return <p role="alert" className="text-bad">{query.error.message}</p>;
  if (!query.data) return <Skeleton className="h-12" />;
  if (query.data.length === 0) return <p className="text-muted">Not started yet.</p>;
  return (
    <ul className="flex flex-col gap-2">
      {query.data.map((attempt) => (
        <li key={attempt.id} className="rounded-md border border-line px-3 py-2 text-[13px]">
          <div className="flex flex-wrap items-center gap-2">
            <StatusBadge kind="execution" state={attempt.status} />
            <span>{agents.find((each) => each.id === attempt.agent_id)?.name}</span>
            {attempt.started_at && (
              <span className="text-muted">
                <Elapsed from={attempt.started_at} until={attempt.finished_at} />
              </span>
            )}
            <span className="ml-auto text-muted">
              <Ago time={attempt.created_at} />
            </span>
            {attempt.run_id && (
              <Link to="/runs/$runId" params={{ runId: attempt.run_id }} className="text-accent hover:underline">
                Run
              </Link>
            )}
          </div>
          {(attempt.error || attempt.summary) && (
            <p className={attempt.error ? "mt-1 text-bad" : "mt-1 text-muted"}>{attempt.error || attempt.summary}</p>
          )}
        </li>
      ))}
    </ul>
  );
}
