// The calls that change a task.
import { api, data, json, type Schemas } from "@/api/client";
import { repoName } from "@/ui/format";
import type { Place, Task } from "./model";

// The API's description says of no field of these bodies that it is needed, which its types read as "all are".
type Some<T> = Partial<T>;
const path = (id: string) => ({ path: { id } });

export const createTask = (body: Schemas["NewTask"]) => data(api.POST("/api/v1/tasks", { body }));
export const startTask = (id: string, body: Some<Schemas["TaskStart"]> = {}) =>
  data(api.POST("/api/v1/tasks/{id}/start", { params: path(id), body: body as Schemas["TaskStart"] }));
export const moveTask = (id: string, body: Place) => data(api.POST("/api/v1/tasks/{id}/move", { params: path(id), body }));
export const changeTask = (id: string, body: Some<Schemas["TaskChange"]>) =>
  data(api.PATCH("/api/v1/tasks/{id}", { params: path(id), body: body as Schemas["TaskChange"] }));
export const cancelTask = (id: string) => data(api.POST("/api/v1/tasks/{id}/cancel", { params: path(id) }));
/** Starts it, or lets it wait until an agent is free. */
export const startLater = (id: string, feedback?: string) => startTask(id, { when: "free", ...(feedback && { feedback }) });
/** A task that waits for an agent is not started by itself any more; it stays in its column. */
export const leaveQueue = cancelTask;
export const pauseTask = (id: string) => data(api.POST("/api/v1/tasks/{id}/pause", { params: path(id), body: {} as Schemas["TaskPause"] }));
export const resumeTask = (id: string) => data(api.POST("/api/v1/tasks/{id}/resume", { params: path(id) }));
export const deleteTask = (id: string) => data(api.DELETE("/api/v1/tasks/{id}", { params: path(id) }));

/** A task, or a session. */
type HasPull = Pick<Task, "repo_url" | "pull_request_number">;

/** GitHub's name of the repository, and the number of the pull request. */
const pull = (task: HasPull) => ({ repo: repoName(task.repo_url), number: String(task.pull_request_number) });

export type MergeMethod = "merge" | "squash" | "rebase";

export function mergePull(task: Task, method: MergeMethod, ignoreChecks: boolean) {
  const { repo, number } = pull(task);
  return json<Schemas["Merged"]>(`/api/v1/github/pull-requests/${number}/merge`, {
    json: { repo, method, ...(ignoreChecks && { ignore_checks: true }) },
  });
}

export function readyPull(task: HasPull) {
  const { repo, number } = pull(task);
  return json<Schemas["PullRequest"]>(`/api/v1/github/pull-requests/${number}/ready`, { json: { repo } });
}

/** Merges the base into the branch, if the branch is still where it was looked at. */
export function updateBranch(task: Task, headSha: string) {
  const { repo, number } = pull(task);
  return json<Schemas["PullRequest"]>(`/api/v1/github/pull-requests/${number}/update-branch`, { json: { repo, head_sha: headSha } });
}

export function closePull(task: Task) {
  const { repo, number } = pull(task);
  return json<Schemas["PullRequest"]>(`/api/v1/github/pull-requests/${number}`, {
    method: "PATCH",
    json: { repo, state: "closed" },
  });
}
