import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronRight, CircleCheck, CircleX, Ellipsis, ExternalLink, LoaderCircle } from "lucide-react";
import { useState } from "react";
import { useForgeLink } from "@/components/forge";
import { Badge } from "@/ui/badge";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/classes";
import { ConfirmDialog } from "@/ui/dialog";
import { repoName } from "@/ui/format";
import { Menu } from "@/ui/menu";
import { StatusBadge } from "@/ui/status";
import { Ago } from "@/ui/time";
import { done, failed } from "@/ui/toast";
import { closePull, readyPull } from "../board/actions";
import { MergeDialog } from "../board/MergeDialog";
import { keys } from "@/api/queries";
import { checksQuery, type PullState, type Task, verdictOf } from "./data";
import { PullDetails } from "./Details";

function ChecksBadge({ task }: { task: Task }) {
  const checks = useQuery(checksQuery(task)).data;
  const verdict = checks && verdictOf(checks);
  if (verdict === "passed") return <Badge tone="ok" icon={CircleCheck}>Checks passed</Badge>;
  if (verdict === "failed") return <Badge tone="bad" icon={CircleX}>Checks failed</Badge>;
  if (verdict === "running") return <Badge tone="info" icon={LoaderCircle} spin>Checks run</Badge>;
  return null;
}

function useActions(task: Task) {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const refresh = () => Promise.all([["github", repoName(task.repo_url)], keys.tasks, keys.board].map((queryKey) => queries.invalidateQueries({ queryKey })));
  const act = async (what: string, call: () => Promise<unknown>) => {
    setBusy(true);
    try {
      await call();
      done(what);
    } catch (error) {
      failed(`Pull request #${task.pull_request_number} stays as it was`, error);
    } finally {
      await refresh();
      setBusy(false);
    }
  };
  return { busy, act, refresh };
}

/** A pull request: one line, and on demand what GitHub knows. */
export function PullRow({ task, state, open, onToggle, withChecks }: {
  task: Task;
  state: PullState;
  open: boolean;
  onToggle: () => void;
  /** Asks GitHub for the checks although the row is closed. */
  withChecks: boolean;
}) {
  const { busy, act, refresh } = useActions(task);
  const [asked, setAsked] = useState<"" | "merge" | "close">("");
  const number = task.pull_request_number;
  const link = useForgeLink()(task.pull_request_url);
  // The task's own word is finer: approved, changes requested.
  const shown = state === "open" && task.pull_request_state ? task.pull_request_state : state;
  // The server moves the task along with it.
  const merged = async () => {
    setAsked("");
    await refresh();
  };
  const live = state === "open" || state === "draft";
  return (
    <li aria-label={`Pull request ${number}`}>
      <div className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-1 px-3 py-1.5 hover:bg-hover">
        <IconButton label={`Details of #${number}`} small aria-expanded={open} onClick={onToggle} className="max-sm:order-1">
          <ChevronRight aria-hidden className={cx("size-4 transition-transform", open && "rotate-90")} />
        </IconButton>
        <StatusBadge kind="pull" state={shown} />
        <div className="relative min-w-0 flex-1 basis-60 py-0.5 max-sm:order-first max-sm:basis-full sm:mr-auto">
          <Link data-row={task.id} to="/work/$taskId" params={{ taskId: task.id }} className="block truncate font-medium after:absolute after:inset-0 hover:underline">
            {task.title}
          </Link>
          <p className="truncate text-xs text-muted">
            {repoName(task.repo_url)} #{number} · task #{task.number} · <Ago time={task.updated_at} />
          </p>
        </div>
        {withChecks && <ChecksBadge task={task} />}
        {state === "draft" && (
          <Button small busy={busy} onClick={() => void act(`#${number} is ready for review`, () => readyPull(task))}>
            Mark ready
          </Button>
        )}
        {state === "open" && (
          <Button small look="primary" busy={busy} onClick={() => setAsked("merge")}>
            Merge
          </Button>
        )}
        {link && (
          <a href={link} target="_blank" rel="noreferrer" aria-label={`Open #${number} on GitHub`} className="inline-grid size-7 place-items-center rounded text-muted hover:bg-hover hover:text-text">
            <ExternalLink aria-hidden className="size-4" />
          </a>
        )}
        {live && (
          <Menu
            label={`Actions for #${number}`}
            trigger={
              <IconButton label={`Actions for #${number}`} small>
                <Ellipsis aria-hidden className="size-4" />
              </IconButton>
            }
            items={[{ label: "Close without merging", danger: true, onSelect: () => setAsked("close") }]}
          />
        )}
      </div>
      {open && <PullDetails task={task} />}
      {asked === "merge" && <MergeDialog task={task} onClose={() => setAsked("")} onMerged={() => void merged()} />}
      {asked === "close" && (
        <ConfirmDialog
          open
          busy={busy}
          onClose={() => setAsked("")}
          onConfirm={() => {
            setAsked("");
            void act(`#${number} was closed`, () => closePull(task));
          }}
          title={`Close pull request #${number}?`}
          lost={`“${task.title}” is not merged. The branch stays, and the pull request can be opened again on GitHub.`}
          action="Close it"
        />
      )}
    </li>
  );
}
