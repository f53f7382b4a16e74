import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Download, RotateCw, ScrollText, SquareTerminal } from "lucide-react";
import { api, data, json, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { stepLabel } from "@/components/Stepper";
import { Button } from "@/ui/button";
import { saveFile } from "@/ui/download";
import { failed } from "@/ui/toast";
import { Ago } from "@/ui/time";
import { pullQuery } from "../pulls/data";
import { UpdateBranch } from "../pulls/UpdateBranch";
import { Banner } from "./Banner";
import { useUrl } from "@/ui/url";

interface Props {
  task: Schemas["Task"];
  execution: Schemas["Execution"] | undefined;
  sandboxRuns: boolean;
  onTerminal: () => void;
}

/** What stands in the way: a pause, a step that is tried again, or the work has failed. At a good end what it says itself. */
export function TaskBanners({ task, execution, sandboxRuns, onTerminal }: Props) {
  if (!execution) return null;
  if (task.status === "failed") return <Failure {...{ task, execution, sandboxRuns, onTerminal }} />;
  if (task.status === "in_review" || task.status === "done")
    return (
      <>
        {task.status === "in_review" && task.pull_request_number > 0 && <Behind task={task} />}
        {execution.summary && (
          <p className="line-clamp-4 shrink-0 border-b border-line px-4 py-2 break-words whitespace-pre-wrap" title={execution.summary}>
            <span className="sr-only">Summary: </span>
            {execution.summary}
          </p>
        )}
      </>
    );
  if (task.paused_at)
    return (
      <Banner look="warn">
        The work stands still <Ago time={task.paused_at} />
        {task.pause_reason ? `: ${task.pause_reason}` : "."}
      </Banner>
    );
  const again = execution.steps?.find((step) => (step.attempt > 1 && step.state === "running") || (step.state === "ready" && step.error));
  if (task.status !== "in_progress" || !again) return null;
  return (
    <Banner look="warn">
      {stepLabel(again.name)} is tried again (attempt {again.attempt}).{again.error && ` ${again.error}`}
    </Banner>
  );
}

/** GitHub is asked when somebody looks at what waits for review. */
function Behind({ task }: { task: Schemas["Task"] }) {
  const pull = useQuery({ ...pullQuery(task), retry: false }).data;
  if (pull?.mergeable_state !== "behind") return null;
  return (
    <Banner look="warn" actions={<UpdateBranch task={task} pull={pull} />}>
      The branch is behind {pull.base}: it must be up to date before it is merged.
    </Banner>
  );
}

function Failure({ task, execution, sandboxRuns, onTerminal }: Required<Props> & { execution: Schemas["Execution"] }) {
  const queries = useQueryClient();
  const [, change] = useUrl();
  const retry = useMutation({
    mutationFn: () => data(api.POST("/api/v1/runs/{id}/retry", { params: { path: { id: execution.run_id } }, body: {} as Schemas["RunRetry"] })),
    onError: (error) => failed(`#${task.number} was not tried again`, error),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.task(task.id) }),
  });
  const patch = useMutation({
    mutationFn: () => json<{ patch: string }>(`/api/v1/tasks/${task.id}/changes?against=base`),
    onSuccess: (changes) => saveFile(`task-${task.number}.patch`, changes.patch),
    onError: (error) => failed("The patch could not be read", error),
  });
  const step = execution.steps?.find((each) => each.state === "failed");
  const reason = execution.error || step?.error || "The reason is not known; the log may tell.";
  return (
    <Banner
      look="bad"
      actions={
        <>
          <Button small look="primary" busy={retry.isPending} icon={<RotateCw aria-hidden className="size-4" />} onClick={() => retry.mutate()}>
            Retry
          </Button>
          <Button small icon={<ScrollText aria-hidden className="size-4" />} onClick={() => change({ tab: "logs" })}>
            View log
          </Button>
          {sandboxRuns ? (
            <Button small icon={<SquareTerminal aria-hidden className="size-4" />} onClick={onTerminal}>
              Open terminal
            </Button>
          ) : (
            execution.head_sha && (
              <Button small busy={patch.isPending} icon={<Download aria-hidden className="size-4" />} onClick={() => patch.mutate()}>
                Download patch
              </Button>
            )
          )}
        </>
      }
    >
      <p className="font-medium">{step ? `${stepLabel(step.name)} failed` : "The work failed"}</p>
      <p className="line-clamp-4 whitespace-pre-wrap first-letter:uppercase">{reason}</p>
      {step && step.attempt > 1 && <p>It was tried {step.attempt} times.</p>}
    </Banner>
  );
}
