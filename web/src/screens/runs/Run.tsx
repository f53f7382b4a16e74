// One run after the manner of Temporal: the same history as bars, as a list and as JSON; the failure first.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { Ban, Download } from "lucide-react";
import { Suspense, useState } from "react";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";
import { stepLabel } from "@/components/Stepper";
import { saveFile } from "@/ui/download";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { capitalized } from "@/ui/format";
import { lazily } from "@/ui/lazily";
import { Page } from "@/ui/page";
import { useParam } from "@/ui/url";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Tabs } from "@/ui/tabs";
import { Ago, duration, Elapsed, exact } from "@/ui/time";
import { done, failed } from "@/ui/toast";
import { FailureCard } from "./FailureCard";
import { runQuery, stepEventsQuery, useSubjects } from "./queries";
import { RunList } from "./RunList";
import { StepDetail } from "./StepDetail";
import { Timeline } from "./Timeline";
import { canRetry, isOver, type Run as RunData } from "./timeline";

const Changes = lazily(() => import("@/components/Changes").then((module) => ({ default: module.Changes })));

export default function Run() {
  const { runId = "" } = useParams({ strict: false });
  const run = useQuery(runQuery(runId));
  if (run.isPending) return <SkeletonRows />;
  if (run.error) return <ErrorState screen error={run.error} onRetry={() => void run.refetch()} />;
  return <Shown run={run.data} />;
}

function Shown({ run }: { run: RunData }) {
  const subject = useSubjects()(run);
  const events = useQuery(stepEventsQuery(run.id)).data ?? [];
  const [tab = "timeline", setTab] = useParam("tab");
  const [chosen, choose] = useParam("step");
  const [canceling, setCanceling] = useState(false);
  const { retry, cancel } = useActions(run);
  const step = run.steps?.find((each) => each.name === chosen);
  const views = [
    {
      id: "timeline",
      label: "Timeline",
      content: (
        <div className="grid h-full grid-rows-[auto_1fr] lg:grid-cols-[1fr_24rem] lg:grid-rows-1">
          <div className="min-w-0 overflow-y-auto">
            <Timeline run={run} events={events} chosen={chosen} onChoose={(name) => choose(name === chosen ? undefined : name)} />
          </div>
          <section aria-label="Step" className="overflow-y-auto border-line max-lg:border-t lg:border-l">
            {step ? (
              <StepDetail step={step} onRetry={canRetry(run) ? () => retry.mutate(step.name) : undefined} />
            ) : (
              <p className="p-4 text-muted">Choose a step to see what it did.</p>
            )}
          </section>
        </div>
      ),
    },
    { id: "list", label: "List", content: <RunList run={run} events={events} /> },
    {
      id: "json",
      label: "JSON",
      content: (
        <pre tabIndex={0} aria-label="The run as JSON" className="p-4 font-mono text-xs whitespace-pre-wrap">
          {JSON.stringify(run, null, 2)}
        </pre>
      ),
    },
    ...(run.task_id
      ? [
          {
            id: "changes",
            label: "Changes",
            content: (
              <Suspense fallback={<SkeletonRows />}>
                <Changes taskId={run.task_id} />
              </Suspense>
            ),
          },
        ]
      : []),
  ];
  return (
    <Page
      fill
      title={`Run of ${subject.title}`}
      actions={
        <>
          <Button small icon={<Download aria-hidden className="size-4" />} onClick={() => download(run)}>
            Download
          </Button>
          {!isOver(run) && (
            <Button small look="danger" icon={<Ban aria-hidden className="size-4" />} onClick={() => setCanceling(true)}>
              Cancel
            </Button>
          )}
        </>
      }
    >
      <div className="flex h-full min-h-0 flex-col">
        <div className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 pb-3 text-muted">
          <StatusBadge kind="run" state={run.state} />
          <span>
            {capitalized(run.definition)} workflow, version {run.version}
          </span>
          {run.started_at && (
            <span>
              Took <Elapsed from={run.started_at} until={run.finished_at} />
            </span>
          )}
          {run.queued_ms !== null && <span>Queued {duration(run.queued_ms)}</span>}
          {run.queue_expires_at && <span>Given up if it has not begun by {exact(run.queue_expires_at)}</span>}
          <span>
            Created <Ago time={run.created_at} />
          </span>
          {subject.to && (
            <Link to={subject.to} params={{ taskId: subject.id, buildId: subject.id, sessionId: subject.id }} className="text-accent hover:underline">
              Open {subject.title}
            </Link>
          )}
        </div>
        <FailureCard run={run} onRetry={canRetry(run) ? () => retry.mutate(undefined) : undefined} busy={retry.isPending} />
        <div className="min-h-0 flex-1 border-t border-line bg-panel">
          <Tabs fill label="Views" tabs={views} value={views.some((view) => view.id === tab) ? tab : "timeline"} onChange={(id) => setTab(id === "timeline" ? undefined : id)} />
        </div>
      </div>
      <ConfirmDialog
        open={canceling}
        onClose={() => setCanceling(false)}
        onConfirm={() => cancel.mutate(undefined, { onSettled: () => setCanceling(false) })}
        busy={cancel.isPending}
        title={`Cancel the run of ${subject.title}`}
        lost="The step that runs is ended. What it did not push is lost; what has to be cleaned up still is."
        action="Cancel the run"
      />
    </Page>
  );
}

function useActions(run: RunData) {
  const queries = useQueryClient();
  const params = { path: { id: run.id } };
  const fresh = (now: RunData) => {
    queries.setQueryData(keys.run(run.id), now);
    void queries.invalidateQueries({ queryKey: keys.runs });
    void queries.invalidateQueries({ queryKey: keys.run(run.id) });
  };
  const retry = useMutation({
    mutationFn: (step: string | undefined) => data(api.POST("/api/v1/runs/{id}/retry", { params, body: step ? { step } : undefined })),
    onSuccess: (now, step) => {
      fresh(now);
      done(step ? `The run continues at ${stepLabel(step)}` : "The run continues where it stopped");
    },
    onError: (error) => failed("The run was not retried", error),
  });
  const cancel = useMutation({
    mutationFn: () => data(api.POST("/api/v1/runs/{id}/cancel", { params })),
    onSuccess: fresh,
    onError: (error) => failed("The run was not canceled", error),
  });
  return { retry, cancel };
}

const download = (run: RunData) => saveFile(`run-${run.id}.json`, JSON.stringify(run, null, 2), "application/json");
