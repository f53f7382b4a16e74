// Reads of sandboxes, and what can be done with one.
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { ApiError, api, data, type Schemas } from "@/api/client";
import { e2b, sandboxesQuery } from "@/api/e2b";
import { keys, meQuery } from "@/api/queries";
import { done, failed } from "@/ui/toast";
import { mergeBoxes, othersBoxes } from "./boxes";

// Sandboxes that were made by E2B's API and never used by the platform tell no events.
export const LIST_MS = 15_000;
const METRICS_MS = 5_000;

// A list for people: who looks for an older one knows its id.
const PAGE = 200;
const MAX_ROWS = 2000;

/** All pages of a list of sandboxes. */
async function pagesOf(read: (query: { limit: number; offset: number }) => Promise<Schemas["SandboxList"]>) {
  const rows: Schemas["Sandbox"][] = [];
  for (;;) {
    const page = await read({ limit: PAGE, offset: rows.length });
    rows.push(...page.sandboxes);
    if (page.sandboxes.length < PAGE || rows.length >= MAX_ROWS) return rows;
  }
}

const rowsQuery = queryOptions({
  queryKey: [...keys.sandboxes, "rows"],
  queryFn: () => pagesOf((query) => data(api.GET("/api/v1/sandboxes", { params: { query } }))),
});

const everybodyQuery = queryOptions({
  queryKey: [...keys.sandboxes, "everybody"],
  queryFn: async () => {
    const [rows, people] = await Promise.all([
      pagesOf((query) => data(api.GET("/api/v1/admin/sandboxes", { params: { query } }))),
      data(api.GET("/api/v1/users")),
    ]);
    return { rows, names: new Map(people.users.map((user) => [user.id, user.name])) };
  },
});

/** All sandboxes of the user, those that have ended too; for an administrator also those of others. */
export function useBoxes(everybody: boolean) {
  const me = useQuery(meQuery).data?.id ?? "";
  const running = useQuery({ ...sandboxesQuery, refetchInterval: LIST_MS });
  const rows = useQuery(rowsQuery);
  const others = useQuery({ ...everybodyQuery, enabled: everybody });
  const boxes = useMemo(() => {
    if (!running.data || !rows.data || (everybody && !others.data)) return undefined;
    return [...mergeBoxes(running.data, rows.data), ...(everybody && others.data ? othersBoxes(others.data.rows, me, others.data.names) : [])];
  }, [running.data, rows.data, others.data, everybody, me]);
  const asked = everybody ? [running, rows, others] : [running, rows];
  return {
    boxes,
    error: asked.find((query) => query.error)?.error ?? null,
    refetch: () => {
      for (const query of asked) void query.refetch();
    },
  };
}

/** The newest sample of each, again and again while the page can be seen. */
export const latestMetricsQuery = (ids: string[]) =>
  queryOptions({
    queryKey: ["metrics", ids.join()],
    queryFn: () => e2b.latestMetrics(ids),
    refetchInterval: METRICS_MS,
    placeholderData: (before) => before,
    enabled: ids.length > 0,
  });

export const metricsQuery = (id: string, seconds: number) =>
  queryOptions({
    queryKey: ["metrics", id, seconds],
    queryFn: () => e2b.metrics(id, Math.floor(Date.now() / 1000) - seconds),
    refetchInterval: METRICS_MS,
    placeholderData: (before) => before,
  });

export type Detail = Schemas["Sandbox"] & Partial<Schemas["SandboxDetail"]>;

export const detailQuery = (id: string) =>
  queryOptions({
    queryKey: keys.sandbox(id),
    queryFn: async () =>
      (await data(api.GET("/api/v1/sandboxes/{id}", { params: { path: { id } } }))) as unknown as Detail,
    refetchInterval: LIST_MS,
  });

export const timelineQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.sandbox(id), "timeline"],
    queryFn: async () =>
      (await data(api.GET("/api/v1/sandboxes/{id}/timeline", { params: { path: { id }, query: { limit: 1000 } } }))).events,
  });

export const createSandbox = (body: Partial<Schemas["NewSandbox"]>) =>
  data(api.POST("/api/v1/sandboxes", { body: body as Schemas["NewSandbox"] }));

const path = (id: string) => ({ params: { path: { id } } });

export const ACTIONS = {
  pause: { run: (id: string) => data(api.POST("/api/v1/sandboxes/{id}/pause", path(id))), meanwhile: "pausing", past: "Paused" },
  resume: { run: (id: string) => data(api.POST("/api/v1/sandboxes/{id}/resume", path(id))), meanwhile: "resuming", past: "Resumed" },
  kill: { run: (id: string) => data(api.DELETE("/api/v1/sandboxes/{id}", path(id))), meanwhile: "terminating", past: "Ended" },
} as const;

export type Action = keyof typeof ACTIONS;

/** One action on some sandboxes, one after the other. What failed is told; the rest is done. */
export function useAction() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ action, ids }: { action: Action; ids: string[] }) => {
      const failures: unknown[] = [];
      for (const id of ids) await (ACTIONS[action].run(id) as Promise<unknown>).catch((error: unknown) => failures.push(error));
      return failures;
    },
    onSuccess: (failures, { action, ids }) => {
      const count = ids.length - failures.length;
      if (failures.length) failed(`${failures.length} of ${ids.length} could not be changed`, failures[0]);
      else if (count > 1) done(`${ACTIONS[action].past} ${count} sandboxes`);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: keys.sandboxes }),
  });
}

export const isGone = (error: unknown) => error instanceof ApiError && error.status === 404;
