import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";

/** An attempt with its steps. */
export const executionQuery = (task: string, id: string | undefined) =>
  queryOptions({
    queryKey: [...keys.executions(task), id],
    queryFn: () => data(api.GET("/api/v1/executions/{id}", { params: { path: { id: id! } } })),
    enabled: Boolean(id),
  });

export const sandboxQuery = (id: string | null | undefined) =>
  queryOptions({
    queryKey: keys.sandbox(id ?? ""),
    queryFn: () => data(api.GET("/api/v1/sandboxes/{id}", { params: { path: { id: id! } } })),
    enabled: Boolean(id),
  });

/** What a task cost so far. */
export const taskCostQuery = (task: string) =>
  queryOptions({
    queryKey: [...keys.costs, "task", task],
    queryFn: async () => (await data(api.GET("/api/v1/costs/stats", { params: { query: { task_id: task, by: "task" } } }))).sums[0] ?? null,
  });

export const operationsQuery = (task: string) =>
  queryOptions({
    queryKey: [...keys.task(task), "operations"],
    queryFn: async () => (await data(api.GET("/api/v1/tasks/{id}/operations", { params: { path: { id: task }, query: { limit: 200 } } }))).operations,
  });

export const sessionsQuery = queryOptions({
  queryKey: keys.sessions,
  queryFn: async () => (await data(api.GET("/api/v1/sessions", { params: { query: { limit: 100 } } }))).sessions,
});

export const sessionQuery = (id: string) =>
  queryOptions({
    queryKey: keys.session(id),
    queryFn: () => data(api.GET("/api/v1/sessions/{id}", { params: { path: { id } } })),
  });

/** Pages of a conversation, the newest first. */
export const messagesQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.session(id), "messages"],
    queryFn: ({ pageParam }) =>
      data(api.GET("/api/v1/sessions/{id}/messages", { params: { path: { id }, query: pageParam ? { before: pageParam } : {} } })),
    initialPageParam: 0,
    getNextPageParam: (page) => page.before,
  });

export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: async () => (await data(api.GET("/api/v1/models/available"))).models,
});
