import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { Bot, CircleX, Flag, GitBranch, Link2Off, Wrench } from "lucide-react";
import { lazy, type ReactNode, Suspense } from "react";
import { ApiError, json, type Schemas } from "@/api/client";
import { Stepper } from "@/components/Stepper";
import { repoName } from "@/ui/format";
import { Card, useTitle } from "@/ui/page";
import { PrChip } from "@/components/PrChip";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Ago, Elapsed } from "@/ui/time";
import { type Entry, entryOf } from "./activity";
import { AGAIN_MS, useSharedEvents } from "./events";

const Output = lazy(() => import("./Output"));
const DiffView = lazy(() => import("@/components/Changes").then((all) => ({ default: all.DiffView })));

type SharedTask = Pick<
  Schemas["Task"],
  "number" | "title" | "description" | "status" | "repo_url" | "git_branch" | "pull_request_url" | "pull_request_number" | "pull_request_state" | "created_at"
>;
interface Shared {
  task: SharedTask;
  executions: Schemas["Execution"][];
}
interface Changes {
  source: "sandbox" | "stored" | "none";
  patch: string;
  truncated: boolean;
}

const ICONS = { said: Bot, did: Wrench, failed: CircleX, reached: Flag };

function Activity({ entries }: { entries: Entry[] }) {
  if (entries.length === 0) return <p className="px-4 py-6 text-center text-muted">Nothing has happened yet.</p>;
  return (
    <ol className="flex flex-col gap-2 px-4 py-3">
      {entries.slice(-200).map((entry) => {
        const Icon = ICONS[entry.kind];
        return (
          <li key={entry.id} className="flex items-start gap-2">
            <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${entry.kind === "failed" ? "text-bad" : "text-muted"}`} />
            <span className="min-w-0 flex-1 break-words whitespace-pre-wrap">{entry.text}</span>
            <span className="shrink-0 text-xs text-muted">
              <Ago time={entry.time} />
            </span>
          </li>
        );
      })}
    </ol>
  );
}

function Frame({ children }: { children: ReactNode }) {
  return (
    <div className="h-full overflow-y-auto">
      <header className="flex h-12 items-center gap-2 border-b border-line bg-panel px-4">
        <img src="/app/icon.svg" alt="" className="size-6" />
        <span className="font-semibold">Caisson</span>
        <span className="ml-auto text-[13px] text-muted">Read only</span>
      </header>
      <main className="mx-auto flex w-full max-w-5xl flex-col gap-4 px-4 py-6">{children}</main>
    </div>
  );
}

/** A task for people with its link: nothing can be changed here. */
export default function Shared() {
  const token = String(useParams({ strict: false }).token);
  return <Shown key={token} token={token} />;
}

function Shown({ token }: { token: string }) {
  const path = `/api/v1/shared/${encodeURIComponent(token)}`;
  const shared = useQuery({
    queryKey: ["shared", token],
    queryFn: () => json<Shared>(path),
    refetchInterval: (query) => (query.state.data?.task.status === "in_progress" ? AGAIN_MS : false),
  });
  const task = shared.data?.task;
  const events = useSharedEvents(path, task?.status);
  // Its state is part of the name: they are read again when the work has ended.
  const changes = useQuery({ queryKey: ["shared", token, "changes", task?.status], queryFn: () => json<Changes>(`${path}/changes`), enabled: Boolean(task) });
  useTitle(task ? `#${task.number} ${task.title}` : "Shared task");
  if (shared.error)
    return (
      <Frame>
        <h1 className="sr-only">Shared task</h1>
        {shared.error instanceof ApiError && shared.error.status === 404 ? (
          <EmptyState icon={Link2Off} title="This link does not work">
            It is over, was revoked, or is not complete. Ask whoever gave it to you for another one.
          </EmptyState>
        ) : (
          <ErrorState error={shared.error} onRetry={() => void shared.refetch()} />
        )}
      </Frame>
    );
  if (!task)
    return (
      <Frame>
        <h1 className="sr-only">Shared task</h1>
        <SkeletonRows />
      </Frame>
    );
  const latest = shared.data?.executions[0];
  const printed = events.data?.events.some((event) => event.type === "command_output") ? events.data.events : null;
  return (
    <Frame>
      <div>
        <h1 className="text-xl font-semibold">
          <span className="mr-2 font-normal text-muted">#{task.number}</span>
          {task.title}
        </h1>
        <div className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-[13px] text-muted">
          <StatusBadge kind="task" state={task.status} />
          <PrChip url={task.pull_request_url} number={task.pull_request_number} state={task.pull_request_state} />
          {task.repo_url && <span>{repoName(task.repo_url)}</span>}
          {task.git_branch && (
            <span className="inline-flex items-center gap-1">
              <GitBranch aria-hidden className="size-3.5" /> <code className="font-mono text-xs">{task.git_branch}</code>
            </span>
          )}
          <span>
            created <Ago time={task.created_at} />
          </span>
          {latest?.started_at && (
            <span>
              worked on for <Elapsed from={latest.started_at} until={latest.finished_at} />
            </span>
          )}
        </div>
        {task.description && <p className="mt-3 max-w-prose whitespace-pre-wrap">{task.description}</p>}
      </div>
      {latest && (
        <Card title="Steps">
          <div className="px-4 py-3">
            <Stepper steps={latest.steps ?? []} />
            {latest.error && <p className="mt-2 text-bad">{latest.error}</p>}
            {latest.summary && <p className="mt-2 whitespace-pre-wrap">{latest.summary}</p>}
          </div>
        </Card>
      )}
      <Card title="Activity">
        {events.error ? (
          <ErrorState error={events.error} onRetry={() => void events.refetch()} />
        ) : events.data ? (
          <Activity entries={events.data.events.flatMap((event) => entryOf(event) ?? [])} />
        ) : (
          <SkeletonRows rows={4} />
        )}
      </Card>
      {printed && (
        <Card title="Output">
          <div className="h-[28rem] max-h-[70dvh]">
            <Suspense fallback={<SkeletonRows rows={8} height="h-4" />}>
              <Output label={`Output of #${task.number}`} events={printed} />
            </Suspense>
          </div>
        </Card>
      )}
      <Card title="Changes">
        {changes.error ? (
          <ErrorState error={changes.error} onRetry={() => void changes.refetch()} />
        ) : !changes.data ? (
          <SkeletonRows rows={4} />
        ) : changes.data.source === "none" || !changes.data.patch ? (
          <p className="px-4 py-6 text-center text-muted">No changes yet.</p>
        ) : (
          <Suspense fallback={<SkeletonRows rows={4} />}>
            <DiffView patch={changes.data.patch} label={`Changes of #${task.number}`} />
            {changes.data.truncated && <p className="px-4 py-2 text-[13px] text-warn">The changes are long; their end is not shown.</p>}
          </Suspense>
        )}
      </Card>
    </Frame>
  );
}
