// E2B's routes, which are this server's way to reach sandboxes. Names are E2B's.
import { queryOptions } from "@tanstack/react-query";
import { errorOf, json, request } from "./client";
import { keys } from "./queries";

export interface SandboxInfo {
  sandboxID: string;
  templateID: string;
  alias?: string;
  startedAt: string;
  endAt: string;
  state: "running" | "paused";
  cpuCount: number;
  memoryMB: number;
  diskSizeMB: number;
  envdVersion: string;
  metadata?: Record<string, string>;
}

export interface SandboxMetric {
  timestamp: string;
  timestampUnix: number;
  cpuCount: number;
  cpuUsedPct: number;
  memUsed: number;
  memTotal: number;
  diskUsed: number;
  diskTotal: number;
}

export interface Template {
  templateID: string;
  buildID: string;
  aliases?: string[];
  names?: string[];
  cpuCount: number;
  memoryMB: number;
  diskSizeMB: number;
  public: boolean;
  createdAt: string;
  updatedAt: string;
  spawnCount: number;
  buildCount: number;
  envdVersion: string;
  buildStatus?: string;
}

/** At most so many pages of a hundred: a list for people. */
const MAX_PAGES = 20;

/** All sandboxes of the user, newest first. */
async function listSandboxes(): Promise<SandboxInfo[]> {
  const all: SandboxInfo[] = [];
  let next = "";
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const query = new URLSearchParams({ state: "running,paused", limit: "100", ...(next && { nextToken: next }) });
    const response = await request(`/v2/sandboxes?${query}`);
    if (!response.ok) throw await errorOf(response);
    all.push(...((await response.json()) as SandboxInfo[]));
    next = response.headers.get("X-Next-Token") ?? "";
    if (!next) break;
  }
  return all;
}

export const sandboxesQuery = queryOptions({
  queryKey: [...keys.sandboxes, "e2b"],
  queryFn: listSandboxes,
});

export const templatesQuery = queryOptions({
  queryKey: ["templates"],
  queryFn: () => json<Template[]>("/templates"),
});

export interface Snapshot {
  snapshotID: string;
  names: string[];
}

export const snapshotsQuery = queryOptions({
  queryKey: ["snapshots"],
  queryFn: () => json<Snapshot[]>("/snapshots?limit=100"),
});

type Forked = { sandbox?: { sandboxID: string }; error?: { message: string } };

// SECURITY: answers of E2B's routes that make or show one sandbox carry its tokens. The page has no use for
// them: nothing but the id is kept.
export const e2b = {
  metrics: (id: string, start?: number, end?: number) =>
    json<SandboxMetric[]>(`/sandboxes/${id}/metrics?${new URLSearchParams({ ...(start && { start: String(start) }), ...(end && { end: String(end) }) })}`),
  latestMetrics: async (ids: string[]) =>
    ids.length === 0
      ? {}
      : (await json<{ sandboxes: Record<string, SandboxMetric> }>(`/sandboxes/metrics?sandbox_ids=${ids.slice(0, 100).join(",")}`)).sandboxes,
  extend: (id: string, timeout: number) => json<void>(`/sandboxes/${id}/timeout`, { json: { timeout } }),
  snapshot: (id: string, name?: string) => json<Snapshot>(`/sandboxes/${id}/snapshots`, { json: name ? { name } : {} }),
  deleteSnapshot: (id: string) => json<void>(`/templates/${encodeURIComponent(id)}`, { method: "DELETE" }),
  fork: async (id: string, timeout = 3600): Promise<string> => {
    const [made] = await json<Forked[]>(`/sandboxes/${id}/fork`, { json: { count: 1, timeout } });
    if (!made?.sandbox) throw new Error(made?.error?.message ?? "Nothing was made.");
    return made.sandbox.sandboxID;
  },
};
