// The changes of a task, with comments that go back to the agent or to the pull request; and any diff.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { FileDiff, LoaderCircle } from "lucide-react";
import { useCallback } from "react";
import { api, data, json, type Schemas } from "@/api/client";
import { executionsQuery, keys, taskQuery } from "@/api/queries";
import { Select } from "@/ui/field";
import { repoName } from "@/ui/format";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import type { ReadFile } from "./diff/around";
import { DiffPane } from "./diff/DiffPane";
import { ReviewBar } from "./diff/ReviewBar";
import { type Remark, useReview } from "./diff/review";
import { readFile } from "./files/calls";

type Against = "base" | "last";

export interface TaskChanges {
  source: "sandbox" | "stored" | "none";
  base_sha: string;
  head_sha: string;
  branch: string;
  patch: string;
  truncated: boolean;
}

const changesQuery = (task: string, against: Against) => ({
  queryKey: [...keys.changes(task), against],
  queryFn: () => json<TaskChanges>(`/api/v1/tasks/${task}/changes?against=${against}`),
});

/** What reviewers wrote at lines of the task's pull request. */
function useRemarks(task: Schemas["Task"] | undefined): Remark[] {
  const number = task?.pull_request_number ?? 0;
  const comments = useQuery({
    queryKey: [...keys.changes(task?.id ?? ""), "remarks", number],
    enabled: number > 0,
    queryFn: async () => {
      const list = await data(
        api.GET("/api/v1/github/pull-requests/{number}/comments", {
          params: { path: { number: String(number) }, query: { repo: repoName(task!.repo_url) } },
        }),
      );
      return list.map(({ created_at, id, path, line, author, body, url }) => ({ createdAt: created_at, id, path, line, author, body, url }));
    },
  });
  return comments.data ?? NO_REMARKS;
}
const NO_REMARKS: Remark[] = [];

/** Files of the task's checkout, as long as its sandbox runs. */
function useCheckout(task: string): ReadFile {
  const sandbox = useQuery(executionsQuery(task)).data?.[0]?.sandbox_id ?? "";
  return useCallback(
    async (path) => {
      const { repo_path: root } = await data(api.GET("/api/v1/sandboxes/{id}", { params: { path: { id: sandbox } } }));
      return new TextDecoder().decode(await readFile(sandbox, `${root}/${path}`));
    },
    [sandbox],
  );
}

/** Fills the height of its parent. */
export function Changes({ taskId }: { taskId: string }) {
  const navigate = useNavigate();
  const against: Against = useSearch({ strict: false }).against === "last" ? "last" : "base";
  const task = useQuery(taskQuery(taskId)).data;
  const changes = useQuery(changesQuery(taskId, against));
  const drafts = useReview(taskId);
  const remarks = useRemarks(task);
  const read = useCheckout(taskId);
  if (changes.isPending) return <SkeletonRows />;
  if (changes.error) return <ErrorState error={changes.error} onRetry={() => void changes.refetch()} />;
  const compare = (
    <Select
      aria-label="Compare with"
      value={against}
      onChange={(event) => {
        const last = event.target.value === "last" ? "last" : undefined;
        void navigate({ to: ".", search: (before: object) => ({ ...before, against: last }), replace: true });
      }}
    >
      <option value="base">With the base branch</option>
      <option value="last">With the last commit</option>
    </Select>
  );
  const { source, patch, truncated } = changes.data;
  if (source === "none" || !patch) {
    const starting = task?.status === "in_progress" && source === "none";
    return (
      <div className="h-full overflow-y-auto">
        <EmptyState
          icon={starting ? LoaderCircle : FileDiff}
          title={starting ? "The sandbox is starting" : "No changes yet"}
          action={source === "none" ? undefined : compare}
        >
          {starting ? "Changes show up here as soon as the repository is cloned." : "What the agent changes shows up here."}
        </EmptyState>
      </div>
    );
  }
  return (
    <DiffPane
      patch={patch}
      label={`Changes of task ${task?.number ?? ""}`}
      reviewId={taskId}
      remarks={remarks}
      read={source === "sandbox" ? read : undefined}
      tools={
        <>
          {compare}
          {truncated && <span className="text-[13px] text-warn">The diff is cut: it is too large.</span>}
        </>
      }
      footer={task && <ReviewBar reviewId={taskId} drafts={drafts} task={task} />}
    />
  );
}

/** A unified diff, by file. Fills the height of its parent. */
export function DiffView({ patch, label, read }: { patch: string; label: string; read?: ReadFile }) {
  return <DiffPane patch={patch} label={label} read={read} />;
}
