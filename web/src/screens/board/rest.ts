// What a column has beyond its first page: the board tells at most 200 tasks of each. The rest is read when it is
// wanted: at the end of a column, or when something is searched for.
import { useQueries } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";
import type { BoardData, Status, Task } from "./model";

const PAGE = 200;

async function tasksOf(status: string): Promise<Task[]> {
  const all: Task[] = [];
  for (;;) {
    const page = await data(api.GET("/api/v1/tasks", { params: { query: { status: [status], limit: PAGE, offset: all.length } as never } }));
    all.push(...page.tasks);
    if (page.tasks.length < PAGE) return all;
  }
}

/** The board with what else was read. */
export function withRest(board: BoardData, rest: Task[]): BoardData {
  if (rest.length === 0) return board;
  const known = new Set(board.columns.flatMap((column) => column.tasks).map((task) => task.id));
  const late = rest.filter((task) => !known.has(task.id));
  const columns = board.columns.map((column) => ({
    ...column,
    tasks: [...column.tasks, ...late.filter((task) => task.status === column.status)].sort((a, b) => a.position - b.position),
  }));
  return { ...board, columns };
}

/** So many tasks of a column are on the server only. */
export const missingOf = (column: { count: number; tasks: unknown[] }) => Math.max(0, column.count - column.tasks.length);

export function useRest(board: BoardData | undefined) {
  const [wanted, setWanted] = useState<Status[]>([]);
  const { rest, loading } = useQueries({
    queries: wanted.map((status) => ({ queryKey: [...keys.tasks, "column", status], queryFn: () => tasksOf(status) })),
    combine: (results) => ({ rest: results.flatMap((result) => result.data ?? []), loading: results.some((result) => result.isFetching) }),
  });
  return {
    board: useMemo(() => board && withRest(board, rest), [board, rest]),
    loading,
    load: (statuses: Status[]) => {
      const more = statuses.filter((status) => !wanted.includes(status));
      if (more.length) setWanted([...wanted, ...more]);
    },
  };
}
