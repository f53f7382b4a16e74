import { useQuery, useQueryClient } from "@tanstack/react-query";
import { KanbanSquare, Plus, SearchX } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { agentsQuery, approvalsQuery, boardQuery, keys } from "@/api/queries";
import { api, data } from "@/api/client";
import { useShell } from "@/shell/state";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { plural } from "@/ui/format";
import { KeyHint } from "@/ui/kbd";
import { Page } from "@/ui/page";
import { EmptyState, ErrorState, Skeleton } from "@/ui/states";
import { done, failed } from "@/ui/toast";
import { useUrl } from "@/ui/url";
import { deleteTask } from "./actions";
import { BulkBar } from "./BulkBar";
import { Columns } from "./Columns";
import { BoardContext } from "./context";
import { useBoardKeys } from "./keyboard";
import { ListLayout } from "./ListLayout";
import { FILTERS, type Grouping, isFiltered, MAIN, matches, nameOf, type Status, type Surroundings, type Task, withMoves } from "./model";
import { MoveDialogs } from "./MoveDialogs";
import { useMove, useMoves } from "./moves";
import { missingOf, useRest } from "./rest";
import { useStepEvents } from "./steps";
import { TaskPanel } from "./TaskPanel";
import { Toolbar } from "./Toolbar";

const costsQuery = {
  queryKey: [...keys.costs, "by task"],
  queryFn: async () => (await data(api.GET("/api/v1/costs/stats", { params: { query: { by: "task" } } }))).sums,
};

/** Everything that is read for the board, with the moves the server has not answered yet. */
function useBoardData() {
  const query = useQuery(boardQuery);
  const agents = useQuery(agentsQuery).data ?? [];
  const approvals = useQuery(approvalsQuery).data;
  const sums = useQuery(costsQuery).data;
  const places = useMoves((state) => state.places);
  const rest = useRest(query.data);
  const board = useMemo(() => rest.board && withMoves(rest.board, places), [rest.board, places]);
  const around = useMemo<Surroundings>(
    () => ({
      asked: new Set(approvals?.filter((each) => each.state === "pending").map((each) => each.task_id ?? "")),
      tasks: new Map(board?.columns.flatMap((column) => column.tasks).map((task) => [task.id, task])),
    }),
    [approvals, board],
  );
  const costs = useMemo(() => new Map(sums?.map((each) => [each.key, each.dollars])), [sums]);
  return { query, board, rest, agents, around, costs };
}

function useSelection(order: Task[]) {
  const [selected, setSelected] = useState<Set<string>>(new Set());
  const last = useRef("");
  const add = (...ids: string[]) => setSelected((old) => new Set([...old, ...ids]));
  const select = (id: string, range = false) => {
    const [a, b] = [last.current, id].map((each) => order.findIndex((task) => task.id === each)) as [number, number];
    last.current = id;
    if (range && a >= 0) return add(...order.slice(Math.min(a, b), Math.max(a, b) + 1).map((task) => task.id));
    setSelected((old) => (old.has(id) ? new Set([...old].filter((each) => each !== id)) : new Set([...old, id])));
  };
  return { selected, select, add, clear: () => setSelected(new Set()) };
}

function DeleteDialog({ tasks, onClose, onDeleted }: { tasks: Task[]; onClose: () => void; onDeleted: () => void }) {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const one = tasks.length === 1 ? (tasks[0] as Task) : null;
  const remove = async () => {
    setBusy(true);
    for (const task of tasks) await deleteTask(task.id).catch((error) => failed(`${nameOf(task)} was not deleted`, error));
    await queries.invalidateQueries({ queryKey: keys.board });
    done(one ? `${nameOf(one)} was deleted` : `${plural(tasks.length, "task")} deleted`);
    onDeleted();
  };
  return (
    <ConfirmDialog
      open
      busy={busy}
      onClose={onClose}
      onConfirm={() => void remove()}
      title={one ? `Delete ${nameOf(one)}?` : `Delete ${plural(tasks.length, "task")}?`}
      lost={`Its text and its history are lost. Branches and pull requests stay.${one ? "" : ` ${tasks.map((task) => `#${task.number}`).join(", ")}`}`}
      type={one ? undefined : "delete"}
      action="Delete"
    />
  );
}

export default function Board() {
  const [url, change] = useUrl();
  const { query, board, rest, agents, around, costs } = useBoardData();
  const { move } = useMove();
  const said = useMoves((state) => state.said);
  const search = useRef<HTMLInputElement>(null);
  const [doomed, setDoomed] = useState<Task[]>([]);
  useStepEvents();

  const filtered = isFiltered(url);
  const all = url.all === "1" || url.state === "failed";
  const columns = (board?.columns ?? []).map((column) => ({
    ...column,
    status: column.status as Status,
    missing: missingOf(column),
    tasks: column.tasks.filter((task) => matches(task, url, around)),
  }));
  const shown = columns.filter((column) => all || MAIN.includes(column.status));
  const tasks = shown.flatMap((column) => column.tasks);
  const hidden = columns.filter((column) => !shown.includes(column));
  const total = board?.columns.reduce((sum, column) => sum + column.count, 0) ?? 0;
  const repos = [...new Set([...around.tasks.values()].map((task) => task.repo_url).filter(Boolean))].sort();
  const missing = shown.filter((column) => column.missing > 0).map((column) => column.status);
  // A search looks at everything.
  useEffect(() => {
    if (filtered && missing.length) rest.load(missing);
  });
  const { selected, select, add, clear } = useSelection(tasks);
  const chosen = [...selected].flatMap((id) => around.tasks.get(id) ?? []);
  const close = () => change({ task: undefined });

  useBoardKeys({
    find: (id) => (id ? around.tasks.get(id) : undefined),
    move: (task, status) => void move(task, { status }),
    select,
    add,
    selectAll: () => add(...tasks.map((task) => task.id)),
    clear,
    close,
    search: () => search.current?.focus(),
    remove: (task) => task.status !== "in_progress" && setDoomed([task]),
  });

  const newTask = (
    <Button look="primary" icon={<Plus aria-hidden className="size-4" />} onClick={() => useShell.setState({ newTask: true })}>
      New task <KeyHint keys="C" />
    </Button>
  );

  const content = () => {
    if (query.error && !board) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
    if (!board) return <BoardSkeleton />;
    if (total === 0)
      return (
        <EmptyState icon={KanbanSquare} title="No tasks yet" action={newTask}>
          A task says what should be done in which repository. An agent turns it into a pull request.
        </EmptyState>
      );
    if (filtered && tasks.length === 0)
      return (
        <EmptyState
          icon={SearchX}
          title="No task matches"
          action={<Button onClick={() => change(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}>Clear the filters</Button>}
        />
      );
    if (url.layout === "list") return <ListLayout tasks={tasks} by={(url.group as Grouping) ?? "status"} missing={shown.reduce((sum, column) => sum + column.missing, 0)} />;
    return (
      <Columns
        columns={shown}
        filtered={filtered}
        wip={board.wip}
        column={(shown.find((each) => each.status === url.column)?.status ?? "pending") as Status}
        onColumn={(status) => change({ column: status })}
      />
    );
  };

  return (
    <BoardContext
      value={{
        around,
        agents,
        costs,
        open: url.task,
        selected,
        select,
        openTask: (id) => change({ task: id }, { push: true }),
        askDelete: setDoomed,
        loadRest: (status) => rest.load(status ? [status] : missing),
        loadingRest: rest.loading,
      }}
    >
      <div className="flex h-full min-h-0">
        <div className="min-w-0 flex-1">
          <Page title="Board" actions={newTask} fill>
            <div className="flex h-full min-h-0 flex-col">
              {total > 0 && (
                <Toolbar
                  url={url}
                  change={change}
                  agents={agents}
                  repos={repos}
                  hidden={hidden.reduce((sum, column) => sum + column.count, 0)}
                  failures={hidden.find((column) => column.status === "failed")?.count ?? 0}
                  search={search}
                />
              )}
              <div className="min-h-0 flex-1">{content()}</div>
            </div>
          </Page>
        </div>
        {url.task && <TaskPanel id={url.task} onClose={close} />}
      </div>
      {chosen.length > 0 && <BulkBar tasks={chosen} onClear={clear} />}
      <MoveDialogs />
      {doomed.length > 0 && (
        <DeleteDialog
          tasks={doomed}
          onClose={() => setDoomed([])}
          onDeleted={() => {
            if (doomed.some((task) => task.id === url.task)) close();
            setDoomed([]);
            clear();
          }}
        />
      )}
      <p role="status" className="sr-only">
        {said}
      </p>
    </BoardContext>
  );
}

function BoardSkeleton() {
  return (
    <div role="status" aria-label="Loading" className="flex h-full gap-3 px-4 pb-4">
      {MAIN.map((status, index) => (
        <div key={status} className="hidden min-w-64 flex-1 flex-col gap-2 rounded-lg bg-sunken p-2 first:flex md:flex">
          <Skeleton className="h-5 w-24" />
          {Array.from({ length: 3 - (index % 3) }, (_, row) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
            <Skeleton key={row} className="h-20" />
          ))}
        </div>
      ))}
    </div>
  );
}
