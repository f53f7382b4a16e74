// The steps of tasks that are worked on: read once per attempt, then kept up to date by events.
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, data } from "@/api/client";
import type { ExecutionStep } from "@/components/Stepper";
import { useEvents } from "@/live/store";
import type { LiveEvent } from "@/live/stream";
import type { Task } from "./model";

export interface Attempt {
  id: string;
  startedAt: string | null;
  steps: ExecutionStep[];
}

const key = (task: string) => ["steps", task];

// Events that came since the page is open, by task: one that comes while the steps are being read would be lost
// otherwise.
const told = new Map<string, LiveEvent[]>();
const MOST = 100;

const stepsQuery = (task: string) =>
  queryOptions({
    queryKey: key(task),
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async (): Promise<Attempt | null> => {
      const list = await data(
        api.GET("/api/v1/tasks/{id}/executions", { params: { path: { id: task }, query: { limit: 1 } } }),
      );
      const id = list.executions[0]?.id;
      if (!id) return null;
      const execution = await data(api.GET("/api/v1/executions/{id}", { params: { path: { id } } }));
      const read = { id, startedAt: execution.started_at ?? execution.created_at, steps: execution.steps ?? [] };
      return (told.get(task) ?? []).filter((event) => event.execution_id === id).reduce(afterStep, read);
    },
  });

export const useSteps = (task: Task) => useQuery({ ...stepsQuery(task.id), enabled: task.status === "in_progress" }).data;

/** The attempt after an event about one of its steps. */
export function afterStep(attempt: Attempt, event: LiveEvent): Attempt {
  const name = String(event.step ?? "");
  const state = String(event.state ?? "");
  const ended = ["done", "failed", "canceled", "skipped"].includes(state);
  const known = attempt.steps.find((each) => each.name === name);
  const step: ExecutionStep = {
    name,
    state,
    attempt: Number(event.attempt ?? known?.attempt ?? 1),
    error: state === "failed" ? String(event.message ?? "") : "",
    started_at: known?.started_at ?? event.timestamp,
    finished_at: ended ? event.timestamp : null,
  };
  return {
    ...attempt,
    steps: known ? attempt.steps.map((each) => (each.name === name ? step : each)) : [...attempt.steps, step],
  };
}

/** Once per board. */
export function useStepEvents() {
  const queries = useQueryClient();
  useEvents((event) => {
    if (!event.task_id) return;
    if (event.type === "execution_started") {
      told.delete(event.task_id);
      void queries.invalidateQueries({ queryKey: key(event.task_id) });
    }
    if (event.type === "execution_step") {
      told.set(event.task_id, [...(told.get(event.task_id) ?? []), event].slice(-MOST));
      queries.setQueryData<Attempt | null>(key(event.task_id), (attempt) =>
        attempt && attempt.id === event.execution_id ? afterStep(attempt, event) : attempt,
      );
    }
  });
}
