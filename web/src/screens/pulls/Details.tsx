import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleDashed, CircleX, LoaderCircle } from "lucide-react";
import type { ReactNode } from "react";
import { ForgeLink } from "@/components/forge";
import { Skeleton } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Ago } from "@/ui/time";
import { checksQuery, lastReviews, pullQuery, reviewsQuery, type Task, verdictOf } from "./data";
import { UpdateBranch } from "./UpdateBranch";

function Part({ title, query, children }: { title: string; query: { error: Error | null; isPending: boolean }; children: ReactNode }) {
  return (
    <section>
      <h2 className="mb-1 text-[13px] font-semibold text-muted">{title}</h2>
      {query.error ? <p className="text-bad">{query.error.message}</p> : query.isPending ? <Skeleton className="h-8" /> : children}
    </section>
  );
}

const CHECKS = {
  passed: { icon: CircleCheck, className: "text-ok", word: "passed" },
  failed: { icon: CircleX, className: "text-bad", word: "failed" },
  running: { icon: LoaderCircle, className: "text-info", word: "runs" },
  none: { icon: CircleDashed, className: "text-muted", word: "" },
};

/** Checks, reviews and whether it can be merged: asked of GitHub when somebody looks. */
export function PullDetails({ task }: { task: Task }) {
  const pull = useQuery(pullQuery(task));
  const checks = useQuery(checksQuery(task));
  const reviews = useQuery(reviewsQuery(task));
  const one = pull.data;
  return (
    <div className="grid gap-4 border-t border-line bg-ground px-4 py-3 sm:grid-cols-3">
      <Part title="Changes" query={pull}>
        {one && (
          <>
            <p>
              <span className="text-ok">+{one.additions}</span> <span className="text-bad">−{one.deletions}</span> in {one.changed_files}{" "}
              {one.changed_files === 1 ? "file" : "files"}
            </p>
            <p className="text-[13px] break-all text-muted">
              <code className="font-mono text-xs">{one.head}</code> into <code className="font-mono text-xs">{one.base}</code>
            </p>
            {one.state === "open" && (
              <p className="text-[13px]">
                {one.mergeable === null ? "GitHub does not know yet whether it can be merged." : one.mergeable ? "No conflicts with the base branch." : "It has conflicts with the base branch."}
                {one.mergeable_state === "behind" && " It is behind the base branch."}
              </p>
            )}
            <UpdateBranch task={task} pull={one} />
          </>
        )}
      </Part>
      <Part title="Checks" query={checks}>
        {checks.data?.length === 0 && <p className="text-muted">No checks.</p>}
        <ul className="flex flex-col gap-1">
          {checks.data?.map((check) => {
            const look = CHECKS[verdictOf([check])];
            return (
              <li key={check.name} className="flex items-center gap-1.5">
                <look.icon aria-hidden className={`size-4 shrink-0 ${look.className}`} />
                <span className="min-w-0 truncate">
                  <ForgeLink url={check.url} className="text-accent underline">{check.name}</ForgeLink>
                </span>
                <span className="text-xs text-muted">{check.conclusion || look.word}</span>
              </li>
            );
          })}
        </ul>
      </Part>
      <Part title="Reviews" query={reviews}>
        {reviews.data?.length === 0 && <p className="text-muted">Nobody has reviewed it.</p>}
        <ul className="flex flex-col gap-1.5">
          {lastReviews(reviews.data ?? []).map((review) => (
            <li key={review.id}>
              <div className="flex flex-wrap items-center gap-1.5">
                <StatusBadge kind="pull" state={review.state} />
                <ForgeLink url={review.url} className="text-accent underline">{review.author}</ForgeLink>
                <span className="text-xs text-muted">
                  <Ago time={review.created_at} />
                </span>
              </div>
              {review.body && <p className="text-[13px] whitespace-pre-wrap text-muted">{review.body}</p>}
            </li>
          ))}
        </ul>
      </Part>
    </div>
  );
}
