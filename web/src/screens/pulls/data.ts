// Tasks with pull requests, and what GitHub says about them.
import { queryOptions } from "@tanstack/react-query";
import { api, data, json, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { repoName } from "@/ui/format";

export type Task = Schemas["Task"];
export type PullRequest = Schemas["PullRequest"];
export type PullState = "open" | "draft" | "merged" | "closed";

const pulls = [...keys.tasks, "pulls"];

export const pullTasksQuery = queryOptions({
  queryKey: pulls,
  queryFn: async () => {
    const { tasks } = await json<Schemas["TaskList"]>("/api/v1/tasks?pull_request_state=any&limit=200");
    return tasks.filter((task) => task.pull_request_number > 0);
  },
});

/** One request for all pull requests of a repository. */
export const repositoryQuery = (repo: string) =>
  queryOptions({
    queryKey: ["github", repo, "pulls"],
    queryFn: () => data(api.GET("/api/v1/github/pull-requests", { params: { query: { repo, state: "all", limit: 100 } } })),
  });

const of = (task: Task) => ({ path: { number: String(task.pull_request_number) }, query: { repo: repoName(task.repo_url) } });

export const pullQuery = (task: Task) =>
  queryOptions({
    queryKey: ["github", repoName(task.repo_url), "pulls", task.pull_request_number],
    queryFn: () => data(api.GET("/api/v1/github/pull-requests/{number}", { params: of(task) })),
  });

export const checksQuery = (task: Task) =>
  queryOptions({
    queryKey: ["github", repoName(task.repo_url), "pulls", task.pull_request_number, "checks"],
    queryFn: () => data(api.GET("/api/v1/github/pull-requests/{number}/checks", { params: of(task) })),
  });

export const reviewsQuery = (task: Task) =>
  queryOptions({
    queryKey: ["github", repoName(task.repo_url), "pulls", task.pull_request_number, "reviews"],
    queryFn: () => data(api.GET("/api/v1/github/pull-requests/{number}/reviews", { params: of(task) })),
  });

/** GitHub knows best; without its answer what the webhooks told. */
export function stateOf(task: Task, pull: PullRequest | undefined): PullState {
  if (pull) return pull.merged ? "merged" : pull.state === "closed" ? "closed" : pull.draft ? "draft" : "open";
  const told = task.pull_request_state;
  return told === "merged" || told === "closed" || told === "draft" ? told : "open";
}

export type Verdict = "none" | "running" | "failed" | "passed";

export function verdictOf(checks: Schemas["Check"][]): Verdict {
  if (checks.length === 0) return "none";
  if (checks.some((check) => check.status === "completed" && !["success", "neutral", "skipped"].includes(check.conclusion))) return "failed";
  return checks.some((check) => check.status !== "completed") ? "running" : "passed";
}

/** The last word of every reviewer. */
export function lastReviews(reviews: Schemas["Review"][]): Schemas["Review"][] {
  const last = new Map<string, Schemas["Review"]>();
  for (const review of reviews) if (review.state !== "commented" || !last.has(review.author)) last.set(review.author, review);
  return [...last.values()];
}
