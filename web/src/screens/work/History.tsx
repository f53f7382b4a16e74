import { useQuery } from "@tanstack/react-query";
import { GitCommitHorizontal } from "lucide-react";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";
import { CopyButton } from "@/ui/copy";
import { repoName, safeLink } from "@/ui/format";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Ago } from "@/ui/time";

export interface Commit {
  sha: string;
  message: string;
  author?: string;
  date?: string;
}

/** Commits: those that were kept when the work was committed, else what is in the sandbox now. */
export function History({ kept, sandboxId, running, repoUrl, since }: {
  kept: Commit[];
  sandboxId: string | null | undefined;
  running: boolean;
  repoUrl: string;
  /** The commit that the work began at: it and older ones are not shown. */
  since?: string;
}) {
  const live = useQuery({
    queryKey: [...keys.sandbox(sandboxId ?? ""), "history", kept.length],
    queryFn: async () =>
      (await data(api.GET("/api/v1/sandboxes/{id}/git/history", { params: { path: { id: sandboxId! } } }))).commits as Commit[],
    enabled: Boolean(sandboxId) && running,
    retry: false,
  });
  const base = live.data?.findIndex((commit) => commit.sha === since) ?? -1;
  const inside = live.data?.slice(0, base < 0 ? undefined : base) ?? [];
  const commits = inside.length >= kept.length ? inside : kept;
  if (live.isLoading) return <SkeletonRows rows={3} />;
  if (commits.length === 0 && live.isError) return <ErrorState error={live.error} onRetry={() => void live.refetch()} title="The commits could not be read" />;
  if (commits.length === 0) return <EmptyState icon={GitCommitHorizontal} title="No commit yet" />;
  const web = safeLink(repoUrl)?.replace(/\.git$/, "");
  return (
    <ol aria-label="Commits" className="divide-y divide-line">
      {commits.map((commit) => (
        <li key={commit.sha} className="flex items-start gap-2.5 px-4 py-2">
          <GitCommitHorizontal aria-hidden className="mt-0.5 size-4 shrink-0 text-violet" />
          <div className="min-w-0 flex-1">
            <p className="truncate font-medium">{commit.message.split("\n")[0]}</p>
            <p className="flex flex-wrap items-center gap-x-2 text-xs text-muted">
              {commit.author && <span>{commit.author}</span>}
              <Ago time={commit.date} />
              {web ? (
                <a href={`${web}/commit/${commit.sha}`} target="_blank" rel="noreferrer" className="font-mono underline" aria-label={`Commit ${commit.sha.slice(0, 8)} in ${repoName(repoUrl)}`}>
                  {commit.sha.slice(0, 8)}
                </a>
              ) : (
                <code className="font-mono">{commit.sha.slice(0, 8)}</code>
              )}
            </p>
          </div>
          <CopyButton text={commit.sha} label="Copy the commit's id" />
        </li>
      ))}
    </ol>
  );
}
