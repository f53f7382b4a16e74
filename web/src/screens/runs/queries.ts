import { useQuery } from "@tanstack/react-query";
import { api, data } from "@/api/client";
import { boardQuery, keys } from "@/api/queries";
import type { LiveEvent } from "@/live/stream";
import { sessionsQuery } from "../work/queries";
import type { Run } from "./timeline";

export const PAGE = 50;

export interface RunFilter {
  state?: string;
  definition?: string;
  task?: string;
  all?: string;
  page?: string;
}

export const runsQuery = (filter: RunFilter) => ({
  queryKey: [...keys.runs, "list", filter],
  queryFn: () =>
    data(
      api.GET("/api/v1/runs", {
        params: {
          query: {
            limit: PAGE,
            offset: PAGE * (Number(filter.page ?? 1) - 1),
            ...(filter.state && { state: filter.state.split(",") as Run["state"][] }),
            ...(filter.definition && { definition: filter.definition }),
            ...(filter.task && { task_id: filter.task }),
            ...(filter.all && { all: true }),
          },
        },
      }),
    ),
});

export const runQuery = (id: string) => ({
  queryKey: keys.run(id),
  queryFn: () => data(api.GET("/api/v1/runs/{id}", { params: { path: { id } } })),
});

/** When each attempt at a step began and ended. */
export const stepEventsQuery = (id: string) => ({
  queryKey: [...keys.run(id), "steps"],
  queryFn: async () =>
    (await data(api.GET("/api/v1/events/history", { params: { query: { run_id: [id], type: ["execution_step"], after: 0, limit: 1000 } } })))
      .events as unknown as LiveEvent[],
});

export interface Subject {
  title: string;
  to: "/work/$taskId" | "/builds/$buildId" | "/work/session/$sessionId" | null;
  id: string;
}

const text = (value: unknown) => (typeof value === "string" ? value : "");

/** What a run is about: its task, its build, its session. */
export function useSubjects(): (run: Run) => Subject {
  const tasks = useQuery(boardQuery).data?.columns.flatMap((column) => column.tasks) ?? [];
  const builds = useQuery({ queryKey: [...keys.builds, "names"], queryFn: () => data(api.GET("/api/v1/builds", { params: { query: { limit: 200 } } })) }).data?.builds ?? [];
  const sessions = useQuery(sessionsQuery).data ?? [];
  return (run) => {
    if (run.task_id) {
      const task = tasks.find((each) => each.id === run.task_id);
      return { title: task ? `#${task.number} ${task.title}` : `Task ${run.task_id.slice(0, 8)}`, to: "/work/$taskId", id: run.task_id };
    }
    const build = text(run.input?.build_id);
    if (build) {
      const found = builds.find((each) => each.id === build);
      const name = found ? [found.project, found.build_version ?? found.goal].filter(Boolean).join(" ") : build.slice(0, 8);
      return { title: name, to: "/builds/$buildId", id: build };
    }
    const session = text(run.input?.session_id);
    if (session) return { title: sessions.find((each) => each.id === session)?.title || `Session ${session.slice(0, 8)}`, to: "/work/session/$sessionId", id: session };
    return { title: run.id.slice(0, 8), to: null, id: run.id };
  };
}
