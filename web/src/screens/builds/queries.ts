import { api, data, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import type { LiveEvent } from "@/live/stream";

export type Build = Schemas["Build"];

export const isOver = (build: Build) => build.state === "ready" || build.state === "failed";

export interface BuildFilter {
  q?: string;
  project?: string;
  state?: string;
  all?: string;
}

/** The newest builds, of one project or of all. */
export const buildsQuery = ({ project, state, all }: BuildFilter) => ({
  queryKey: [...keys.builds, "list", project ?? "", state ?? "", all ?? ""],
  queryFn: () =>
    data(
      api.GET("/api/v1/builds", {
        params: {
          query: {
            limit: 200,
            ...(project && { project }),
            ...(state && { state: state.split(",") as Build["state"][] }),
            ...(all && { all: true }),
          },
        },
      }),
    ),
});

/** What happened to a build: its stages, and how often it was mended. */
export const buildEventsQuery = (id: string) => ({
  queryKey: [...keys.build(id), "events"],
  queryFn: async () =>
    (await data(api.GET("/api/v1/events/history", { params: { query: { build_id: [id], after: 0, limit: 1000 } } })))
      .events as unknown as LiveEvent[],
});

export const diffQuery = (id: string, against: string | undefined) => ({
  queryKey: [...keys.build(id), "diff", against ?? ""],
  queryFn: async () =>
    (await data(api.GET("/api/v1/builds/{id}/diff", { params: { path: { id }, query: against ? { against } : {} } }))).files ?? [],
});

export const readinessQuery = (id: string) => ({
  queryKey: [...keys.build(id), "readiness"],
  queryFn: () => data(api.GET("/api/v1/builds/{id}/readiness", { params: { path: { id } } })),
});
