// Names of what is cached, and the reads that more than one screen needs. An event of the live stream
// makes the entries stale that it concerns (live/apply.ts), so nothing here asks by the clock.
import { queryOptions } from "@tanstack/react-query";
import { ApiError, api, data } from "./client";

export const keys = {
  me: ["me"],
  usage: ["usage"],
  board: ["board"],
  tasks: ["tasks"],
  task: (id: string) => ["tasks", id],
  executions: (task: string) => ["tasks", task, "executions"],
  changes: (task: string) => ["tasks", task, "changes"],
  agents: ["agents"],
  squads: ["squads"],
  sandboxes: ["sandboxes"],
  sandbox: (id: string) => ["sandboxes", id],
  sessions: ["sessions"],
  session: (id: string) => ["sessions", id],
  builds: ["builds"],
  build: (id: string) => ["builds", id],
  runs: ["runs"],
  run: (id: string) => ["runs", id],
  approvals: ["approvals"],
  costs: ["costs"],
  health: ["health"],
} as const;

export const meQuery = queryOptions({
  queryKey: keys.me,
  queryFn: async () => (await data(api.GET("/api/v1/auth/me"))).user,
  retry: (count, error) => !(error instanceof ApiError && error.signedOut) && count < 2,
  staleTime: Number.POSITIVE_INFINITY,
});

/** How one can sign in here, and where GitHub is. */
export const methodsQuery = queryOptions({
  queryKey: ["auth", "methods"],
  queryFn: () => data(api.GET("/api/v1/auth/methods")),
  staleTime: Number.POSITIVE_INFINITY,
});

export const boardQuery = queryOptions({
  queryKey: keys.board,
  queryFn: () => data(api.GET("/api/v1/board", { params: { query: { limit: 200 } } })),
});

export const agentsQuery = queryOptions({
  queryKey: keys.agents,
  queryFn: async () => (await data(api.GET("/api/v1/agents", { params: { query: { limit: 200 } } }))).agents,
});

export const taskQuery = (id: string) =>
  queryOptions({
    queryKey: keys.task(id),
    queryFn: () => data(api.GET("/api/v1/tasks/{id}", { params: { path: { id } } })),
  });

export const executionsQuery = (task: string) =>
  queryOptions({
    queryKey: keys.executions(task),
    queryFn: async () =>
      (await data(api.GET("/api/v1/tasks/{id}/executions", { params: { path: { id: task }, query: { limit: 50 } } })))
        .executions,
  });

export const approvalsQuery = queryOptions({
  queryKey: keys.approvals,
  queryFn: async () => (await data(api.GET("/api/v1/approvals", { params: { query: { limit: 200 } } }))).approvals,
});
