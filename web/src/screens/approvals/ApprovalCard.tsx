import { Link } from "@tanstack/react-router";
import { Check, GitCommitHorizontal, X } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import type { Schemas } from "@/api/client";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { KeyHint } from "@/ui/kbd";
import { SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Ago } from "@/ui/time";

const Changes = lazy(() => import("@/components/Changes").then((all) => ({ default: all.Changes })));

export type Approval = Schemas["Approval"];

// What happens after a yes, by the kind of question.
const RISKS: Record<string, string> = {
  push: "The branch goes to the repository and a pull request is opened. Nothing is merged.",
};

interface Commit {
  sha?: string;
  message?: string;
}

const textIn = (details: Record<string, unknown>, name: string) => (typeof details[name] === "string" ? (details[name] as string) : "");

function Details({ approval }: { approval: Approval }) {
  const details = approval.details as Record<string, unknown>;
  const commits = (Array.isArray(details.commits) ? details.commits : []) as Commit[];
  const [open, setOpen] = useState(false);
  return (
    <div className="mt-2 flex flex-col gap-2">
      {textIn(details, "summary") && <p className="whitespace-pre-wrap">{textIn(details, "summary")}</p>}
      {textIn(details, "command") && (
        <pre className="overflow-x-auto rounded bg-sunken px-2 py-1.5 font-mono text-xs">{textIn(details, "command")}</pre>
      )}
      {textIn(details, "branch") && (
        <p className="text-[13px] text-muted">
          Branch <code className="font-mono text-xs text-text">{textIn(details, "branch")}</code>
        </p>
      )}
      {commits.length > 0 && (
        <ul className="flex flex-col gap-0.5">
          {commits.map((commit, index) => (
            <li key={commit.sha ?? index} className="flex items-center gap-1.5 text-[13px]">
              <GitCommitHorizontal aria-hidden className="size-3.5 shrink-0 text-muted" />
              <code className="font-mono text-xs text-muted">{commit.sha?.slice(0, 7)}</code>
              <span className="truncate">{commit.message?.split("\n")[0]}</span>
            </li>
          ))}
        </ul>
      )}
      {approval.task_id && approval.state === "pending" && (
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary className="w-fit cursor-pointer py-1 text-[13px] font-medium text-accent">Changes</summary>
          {open && (
            <Suspense fallback={<SkeletonRows rows={3} />}>
              <div className="mt-1 max-h-[60dvh] overflow-auto rounded border border-line">
                <Changes taskId={approval.task_id} />
              </div>
            </Suspense>
          )}
        </details>
      )}
    </div>
  );
}

/** A question to the user, with what it is about. The keys a and d answer the one that has the focus. */
export function ApprovalCard({ approval, taskTitle, onApprove, onDeny, busy }: {
  approval: Approval;
  taskTitle?: string;
  onApprove: () => void;
  onDeny: () => void;
  busy: boolean;
}) {
  const pending = approval.state === "pending";
  return (
    <li
      tabIndex={0}
      data-row={approval.id}
      aria-label={approval.title}
      className={cx("rounded-lg border bg-panel px-4 py-3", pending ? "border-line-strong/60" : "border-line")}
    >
      <div className="flex flex-wrap items-center gap-2">
        <Badge className="capitalize">{approval.kind.replaceAll("_", " ")}</Badge>
        <h2 className="min-w-0 flex-1 font-semibold max-sm:order-last max-sm:basis-full">{approval.title}</h2>
        <StatusBadge kind="approval" state={approval.state} />
        <span className="text-xs text-muted">
          <Ago time={approval.decided_at ?? approval.created_at} />
        </span>
      </div>
      {approval.task_id && (
        <p className="mt-1 text-[13px] text-muted">
          For{" "}
          <Link to="/work/$taskId" params={{ taskId: approval.task_id }} className="text-accent underline">
            {taskTitle ?? "the task"}
          </Link>
        </p>
      )}
      <Details approval={approval} />
      {pending && RISKS[approval.kind] && <p className="mt-2 text-[13px] text-muted">{RISKS[approval.kind]}</p>}
      {!pending && approval.comment && (
        <p className="mt-2 rounded bg-sunken px-2 py-1.5 whitespace-pre-wrap">{approval.comment}</p>
      )}
      {pending && (
        <div className="mt-3 flex gap-2">
          <Button look="primary" busy={busy} icon={<Check aria-hidden className="size-4" />} onClick={onApprove}>
            Approve <KeyHint keys="A" />
          </Button>
          <Button disabled={busy} icon={<X aria-hidden className="size-4" />} onClick={onDeny}>
            Deny <KeyHint keys="D" />
          </Button>
        </div>
      )}
    </li>
  );
}
