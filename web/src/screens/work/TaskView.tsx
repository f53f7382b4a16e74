import { useQuery } from "@tanstack/react-query";
import { Hourglass } from "lucide-react";
import { useMemo } from "react";
import { agentsQuery, approvalsQuery, executionsQuery, taskQuery } from "@/api/queries";
import { useForgeLink } from "@/components/forge";
import { type EventLog, useEventLog } from "@/live/event_log";
import { useEvents } from "@/live/store";
import type { LiveEvent } from "@/live/stream";
import { Checkbox } from "@/ui/field";
import { safeLink } from "@/ui/format";
import { lazily } from "@/ui/lazily";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import type { Tab } from "@/ui/tabs";
import { linked } from "@/ui/toast";
import { EventsTab } from "./EventsTab";
import { Feed } from "./Feed";
import { FeedFolder } from "./feed";
import { numberOf, textOf, useFold } from "./fold";
import { type Commit, History } from "./History";
import { Layout } from "./Layout";
import { useOutputLog } from "./output_log";
import { NoSandbox } from "./NoSandbox";
import { executionQuery, operationsQuery } from "./queries";
import { useSandboxRuns } from "./SandboxChip";
import { useUrl } from "@/ui/url";
import { Changes, Files, Part, Preview } from "./tabs";
import { TaskBanners } from "./TaskBanners";
import { TaskFeedback } from "./TaskFeedback";
import { type Progress, TaskHeader } from "./TaskHeader";
import { useWorkTitle } from "./title";

const OutputLog = lazily(() => import("./OutputLog"));

/** One task: who works on it, what happens, and what comes of it. */
export function TaskView({ id }: { id: string }) {
  const task = useQuery(taskQuery(id));
  const agents = useQuery(agentsQuery).data;
  const executions = useQuery(executionsQuery(id)).data;
  const execution = useQuery(executionQuery(id, executions?.[0]?.id)).data;
  const asked = useQuery(approvalsQuery).data?.some((each) => each.task_id === id && each.state === "pending") ?? false;
  const log = useEventLog({ task_id: id });
  const entries = useFold(log.events, () => new FeedFolder());
  const [search, change] = useUrl();
  const forgeLink = useForgeLink();
  const runs = useSandboxRuns(execution?.sandbox_id);
  const state = task.data?.status === "in_progress" ? (asked ? "Needs you" : "Running") : task.data?.status === "failed" ? "Failed" : "";
  useWorkTitle(task.data ? `#${task.data.number} ${task.data.title}` : "Agent work", state);
  useEvents((event) => {
    if (event.type !== "pr_created" || event.task_id !== id) return;
    linked(`Pull request #${numberOf(event.pr_number)} was opened`, "Open", forgeLink(textOf(event.pr_url)));
  });
  const progress = useMemo(() => progressOf(log.events), [log.events]);

  if (task.error) return <ErrorState screen error={task.error} onRetry={() => void task.refetch()} title="This task could not be loaded" />;
  if (!task.data) return <SkeletonRows />;
  const agent = agents?.find((each) => each.id === (execution?.agent_id ?? task.data.agent_id));
  const sandbox = execution?.sandbox_id || null;
  const details = search.details === "all";
  const gone = <NoSandbox id={sandbox} kept={execution?.head_sha ? `The work up to commit ${execution.head_sha.slice(0, 8)} is on ${task.data.git_branch}.` : undefined} />;
  const tabs: Tab[] = [
    { id: "logs", label: "Logs", content: <Part><TaskLogs id={id} title={`#${task.data.number}`} log={log} /></Part> },
    { id: "changes", label: "Changes", content: <Part><Changes taskId={id} /></Part> },
    { id: "preview", label: "Preview", content: <Part>{sandbox && runs ? <Preview source={{ kind: "sandbox", id: sandbox }} /> : gone}</Part> },
    { id: "files", label: "Files", content: <Part>{sandbox && runs ? <Files sandboxId={sandbox} /> : gone}</Part> },
    {
      id: "history",
      label: "History",
      content: (
        <History
          kept={(execution?.commits ?? []).map((commit) => ({ author: agent?.name, date: execution?.finished_at ?? undefined, ...(commit as unknown as Commit) }))}
          sandboxId={sandbox}
          running={runs}
          repoUrl={safeLink(task.data.repo_url) ?? task.data.pull_request_url.replace(/\/pulls?\/\d+$/, "")}
          since={execution?.base_sha}
        />
      ),
    },
    { id: "events", label: "Events", content: <EventsTab log={log} /> },
  ];
  const terminal = () => change({ drawer: search.drawer ? undefined : "open" });
  return (
    <Layout
      tabs={tabs}
      sandboxId={runs ? sandbox : null}
      noTerminal={gone}
      head={
        <>
          <TaskHeader task={task.data} agent={agent} execution={execution} needsYou={asked} progress={progress} onTerminal={terminal} />
          <TaskBanners task={task.data} execution={execution} sandboxRuns={runs} onTerminal={terminal} />
        </>
      }
      centre={
        <div className="flex h-full min-h-0 flex-col">
          <div className="flex shrink-0 items-center border-b border-line px-4 py-1">
            <h2 className="text-xs font-semibold text-muted">Activity</h2>
            <Checkbox label="Details" checked={details} onChange={(event) => change({ details: event.target.checked ? "all" : undefined })} className="ml-auto min-h-6 text-[13px]" />
          </div>
          <div className="min-h-0 flex-1">
            <Feed
              entries={entries}
              details={details}
              waiting={
                log.error ? (
                  <ErrorState error={log.error} onRetry={log.retry} />
                ) : log.loading ? (
                  <SkeletonRows rows={4} />
                ) : (
                  <EmptyState icon={Hourglass} title="Nothing happened yet">
                    {task.data.status === "pending" ? "Start the task to see its agent work." : undefined}
                  </EmptyState>
                )
              }
            />
          </div>
          <TaskFeedback task={task.data} />
        </div>
      }
    />
  );
}

function TaskLogs({ id, title, log }: { id: string; title: string; log: EventLog }) {
  const { lines, groups, notes } = useOutputLog(log);
  const commands = groups.some((group) => group.id.startsWith("op/"));
  const operations = useQuery({ ...operationsQuery(id), enabled: commands }).data;
  const named = useMemo(
    () =>
      groups.map((group) => {
        const operation = group.id.startsWith("op/") ? operations?.find((each) => `op/${each.id}` === group.id) : undefined;
        return operation
          ? { ...group, title: operation.command || group.title, exitCode: operation.exit_code, state: operation.status === "failed" ? ("failed" as const) : group.state }
          : group;
      }),
    [groups, operations],
  );
  return <OutputLog owner={{ kind: "tasks", id }} label={`Log of ${title}`} log={log} lines={lines} notes={notes} groups={named} empty="Nothing was printed yet." />;
}

/** How far the newest attempt says it is. */
export function progressOf(events: LiveEvent[]): Progress {
  let step: number | undefined;
  for (let at = events.length - 1; at >= 0; at -= 1) {
    const event = events[at]!;
    if (event.type === "git_operation" && event.status === "in_progress" && step === undefined && typeof event.progress === "number") step = event.progress;
    if (event.type === "progress") return { percent: numberOf(event.percent), text: textOf(event.message), step };
    if (event.type === "execution_started") break;
  }
  return { percent: 0, text: "", step };
}
