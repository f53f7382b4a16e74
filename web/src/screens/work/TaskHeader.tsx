import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Bot, CircleHelp, CircleStop, GitBranch, Pause, Play } from "lucide-react";
import { type ReactNode, useState } from "react";
import { api, data, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { Stepper } from "@/components/Stepper";
import { useShortcuts } from "@/shell/shortcuts";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { CopyButton } from "@/ui/copy";
import { ConfirmDialog } from "@/ui/dialog";
import { dollars, repoName } from "@/ui/format";
import { PrChip } from "@/components/PrChip";
import { StatusBadge } from "@/ui/status";
import { Elapsed } from "@/ui/time";
import { failed } from "@/ui/toast";
import { pauseTask, resumeTask } from "../board/actions";
import { HeadLine } from "./HeadLine";
import { taskCostQuery } from "./queries";
import { SandboxChip } from "./SandboxChip";

export interface Progress {
  percent: number;
  text: string;
  /** Of the step that runs, where git tells it. */
  step?: number;
}

interface Props {
  task: Schemas["Task"];
  agent: Schemas["Agent"] | undefined;
  execution: Schemas["Execution"] | undefined;
  needsYou: boolean;
  progress: Progress;
  onTerminal: () => void;
}

export function TaskHeader({ task, agent, execution, needsYou, progress, onTerminal }: Props) {
  const working = task.status === "in_progress";
  return (
    <header className="shrink-0 border-b border-line px-4 py-2.5">
      <HeadLine
        title={
          <>
            <span className="font-normal text-muted">#{task.number}</span> {task.title}
          </>
        }
        actions={<Actions task={task} />}
        onTerminal={onTerminal}
      >
        <PrChip url={task.pull_request_url} number={task.pull_request_number} state={task.pull_request_state} />
        {needsYou ? (
          <Badge tone="info" icon={CircleHelp}>
            Needs you
          </Badge>
        ) : task.paused_at ? (
          <Badge tone="warn" icon={Pause}>
            Paused
          </Badge>
        ) : working && agent?.current_task_id === task.id ? (
          <StatusBadge kind="agent" state={agent.status} />
        ) : (
          <StatusBadge kind="task" state={task.status} />
        )}
      </HeadLine>
      <Facts task={task} agent={agent} execution={execution} />
      {execution && (
        <div className="mt-2.5">
          <Stepper steps={execution.steps ?? []} percent={progress.step} />
          <ProgressBar task={task} progress={progress} />
        </div>
      )}
    </header>
  );
}

function Fact({ children }: { children: ReactNode }) {
  return <span className="inline-flex min-w-0 items-center gap-1">{children}</span>;
}

function Facts({ task, agent, execution }: Pick<Props, "task" | "agent" | "execution">) {
  const cost = useQuery(taskCostQuery(task.id)).data;
  const tokens = cost ? cost.tokens_in + cost.tokens_out : 0;
  return (
    <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-[13px] text-muted">
      {agent && (
        <Fact>
          <Bot aria-hidden className="size-3.5" />
          <Link to="/work" search={{ agent: agent.id }} className="hover:text-text">
            {agent.name}
          </Link>
        </Fact>
      )}
      {execution?.started_at && (
        <Fact>
          <Elapsed from={execution.started_at} until={execution.finished_at} />
        </Fact>
      )}
      {cost && (
        <span title={`${cost.tokens_in} tokens read, ${cost.tokens_out} written`} className="tabular-nums">
          {dollars(cost.dollars < 0.0001 ? 0 : cost.dollars)}
          {tokens > 0 && ` · ${tokens.toLocaleString()} tokens`}
        </span>
      )}
      <SandboxChip id={execution?.sandbox_id} />
      {task.repo_url && <span className="truncate max-sm:hidden">{repoName(task.repo_url)}</span>}
      {task.git_branch && (
        <span className="inline-flex min-w-0 items-center gap-1 max-sm:hidden">
          <GitBranch aria-hidden className="size-3.5 shrink-0" />
          <code className="truncate font-mono text-xs">{task.git_branch}</code>
          <CopyButton text={task.git_branch} label="Copy the branch" />
        </span>
      )}
    </div>
  );
}

/** Start, pause or stop what runs. A task of a squad can be paused with it. */
function Actions({ task }: { task: Schemas["Task"] }) {
  const queries = useQueryClient();
  const [asking, setAsking] = useState(false);
  const params = { params: { path: { id: task.id } } };
  const refresh = () => queries.invalidateQueries({ queryKey: keys.task(task.id) });
  const start = useMutation({
    mutationFn: () => data(api.POST("/api/v1/tasks/{id}/start", { ...params, body: {} as Schemas["TaskStart"] })),
    onError: (error) => failed(`#${task.number} was not started`, error),
    onSettled: refresh,
  });
  const stop = useMutation({
    mutationFn: () => data(api.POST("/api/v1/tasks/{id}/cancel", params)),
    onError: (error) => failed(`#${task.number} was not stopped`, error),
    onSuccess: () => setAsking(false),
    onSettled: refresh,
  });
  if (task.status === "in_progress")
    return (
      <>
        <TaskPause task={task} />
        {task.squad_id && <SquadPause id={task.squad_id} />}
        <Button small icon={<CircleStop aria-hidden className="size-4" />} onClick={() => setAsking(true)}>
          Stop
        </Button>
        <ConfirmDialog
          open={asking}
          onClose={() => setAsking(false)}
          onConfirm={() => stop.mutate()}
          busy={stop.isPending}
          title={`Stop #${task.number} ${task.title}?`}
          lost="The agent and its sandbox are ended. What it has not pushed is lost."
          action="Stop the work"
        />
      </>
    );
  if (task.status !== "pending" && task.status !== "backlog" && task.status !== "canceled") return null;
  return (
    <Button small look="primary" busy={start.isPending} icon={<Play aria-hidden className="size-4" />} onClick={() => start.mutate()}>
      Start
    </Button>
  );
}

function TaskPause({ task }: { task: Schemas["Task"] }) {
  const queries = useQueryClient();
  const paused = Boolean(task.paused_at);
  const toggle = useMutation({
    mutationFn: () => (paused ? resumeTask(task.id) : pauseTask(task.id)),
    onError: (error) => failed(paused ? `#${task.number} stays paused` : `#${task.number} was not paused`, error),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.task(task.id) }),
  });
  const run = () => !toggle.isPending && toggle.mutate();
  useShortcuts([{ keys: "p", label: paused ? "Let the task go on" : "Pause the task", scope: "Agent work", run }]);
  return (
    <Button
      small
      busy={toggle.isPending}
      title={paused ? "The agent goes on where it was (P)" : "The agent and its sandbox stand still (P)"}
      icon={paused ? <Play aria-hidden className="size-4" /> : <Pause aria-hidden className="size-4" />}
      onClick={run}
    >
      {paused ? "Resume" : "Pause"}
    </Button>
  );
}

function SquadPause({ id }: { id: string }) {
  const queries = useQueryClient();
  const path = { params: { path: { id } } };
  const squad = useQuery({ queryKey: [...keys.squads, id], queryFn: () => data(api.GET("/api/v1/squads/{id}", path)) }).data;
  const toggle = useMutation({
    mutationFn: (paused: boolean) => data(api.POST(paused ? "/api/v1/squads/{id}/resume" : "/api/v1/squads/{id}/pause", path)),
    onError: (error) => failed("The squad was not changed", error),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.squads }),
  });
  if (!squad) return null;
  const paused = Boolean(squad.paused_at);
  return (
    <Button
      small
      busy={toggle.isPending}
      title={paused ? "The squad goes on" : "The squad stops before its next step"}
      icon={paused ? <Play aria-hidden className="size-4" /> : <Pause aria-hidden className="size-4" />}
      onClick={() => toggle.mutate(paused)}
    >
      {paused ? "Resume squad" : "Pause squad"}
    </Button>
  );
}

function ProgressBar({ task, progress }: { task: Schemas["Task"]; progress: Progress }) {
  const over = task.status === "in_review" || task.status === "done";
  const broken = task.status === "failed";
  if (task.status !== "in_progress" && !over && !broken) return null;
  const percent = over ? 100 : progress.percent;
  const text = broken ? "failed" : progress.text;
  return (
    <div className="mt-1.5 flex items-center gap-2">
      <div
        role="progressbar"
        aria-label="Progress of the work"
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuetext={`${percent} %, ${text}`}
        className="h-1 flex-1 overflow-hidden rounded-full bg-sunken"
      >
        <div className={cx("h-full rounded-full transition-[width]", over ? "bg-ok" : broken ? "bg-bad" : "bg-info")} style={{ width: `${percent}%` }} />
      </div>
      {!over && <span className="inline-block text-xs text-muted first-letter:uppercase">{text}</span>}
    </div>
  );
}
