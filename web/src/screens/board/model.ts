// What the board knows about tasks, without React and without the server.
import type { Schemas } from "@/api/client";

export type Task = Schemas["Task"];
export type Status = Task["status"];
export type BoardData = Schemas["Board"];
export type Agent = Schemas["Agent"];

export const COLUMNS: { status: Status; title: string }[] = [
  { status: "backlog", title: "Backlog" },
  { status: "pending", title: "Pending" },
  { status: "in_progress", title: "In progress" },
  { status: "in_review", title: "In review" },
  { status: "done", title: "Done" },
  { status: "failed", title: "Failed" },
  { status: "canceled", title: "Canceled" },
];
/** The columns that are always there; the keys 1 to 4 mean them. */
export const MAIN: Status[] = ["pending", "in_progress", "in_review", "done"];
export const PRIORITIES = ["urgent", "high", "medium", "low"] as const;

export const titleOf = (status: string) => COLUMNS.find((each) => each.status === status)?.title ?? status;
export const nameOf = (task: Task) => `#${task.number} ${task.title}`;

export interface Place {
  status: Status;
  /** Its place in the column; the end if not said. */
  position?: number;
}

/** The columns with tasks shown where they were put, before the server has answered. */
export function withMoves(board: BoardData, moves: Record<string, Place>): BoardData {
  if (Object.keys(moves).length === 0) return board;
  const moved: Task[] = [];
  const columns = board.columns.map((column) => {
    const stay = column.tasks.filter((task) => !moves[task.id]);
    moved.push(...column.tasks.filter((task) => moves[task.id]));
    return { ...column, tasks: stay, count: column.count - (column.tasks.length - stay.length) };
  });
  for (const task of moved) {
    const place = moves[task.id] as Place;
    const column = columns.find((each) => each.status === place.status);
    if (!column) continue;
    const position = place.position ?? endOf(column.tasks);
    column.tasks = [...column.tasks, { ...task, status: place.status, position }].sort((a, b) => a.position - b.position);
    column.count += 1;
  }
  return { ...board, columns };
}

const endOf = (tasks: Task[]) => Math.max(0, ...tasks.map((task) => task.position)) + 1;

/** The position that lies before `tasks[index]`; undefined = behind all of them. */
export function positionBefore(tasks: Task[], index: number): number | undefined {
  const next = tasks[index];
  const previous = tasks[index - 1];
  if (!next) return undefined;
  return previous ? (previous.position + next.position) / 2 : next.position - 1;
}

export type CardState = "needs_you" | "running" | "paused" | "queued" | "blocked" | "failed" | "idle";
export const CARD_STATES: { id: CardState; label: string }[] = [
  { id: "needs_you", label: "Needs you" },
  { id: "running", label: "Running" },
  { id: "paused", label: "Paused" },
  { id: "queued", label: "Waits for an agent" },
  { id: "blocked", label: "Blocked" },
  { id: "failed", label: "Failed" },
];

export interface Surroundings {
  /** Ids of tasks with a question that waits for a person. */
  asked: Set<string>;
  /** All tasks of the board by id. */
  tasks: Map<string, Task>;
}

export function stateOf(task: Task, { asked, tasks }: Surroundings): CardState {
  if (asked.has(task.id)) return "needs_you";
  if (task.paused_at) return "paused";
  if (task.status === "in_progress") return "running";
  if (task.queue_position > 0) return "queued";
  if (task.status === "failed") return "failed";
  const open = task.status === "pending" || task.status === "backlog";
  // A task that is not on the board any more cannot hold another one up.
  if (open && task.blocked_by.some((id) => (tasks.get(id)?.status ?? "done") !== "done")) return "blocked";
  return "idle";
}

export interface Filter {
  q?: string;
  agent?: string;
  repo?: string;
  priority?: string;
  state?: string;
}

export const FILTERS = ["q", "agent", "repo", "priority", "state"] as const;
export const isFiltered = (filter: Filter) => FILTERS.some((name) => filter[name]);

export function matches(task: Task, filter: Filter, around: Surroundings): boolean {
  const text = `#${task.number} ${task.title} ${task.description} ${task.git_branch}`.toLowerCase();
  return (
    (filter.q ?? "").toLowerCase().split(/\s+/).every((word) => text.includes(word)) &&
    (!filter.agent || (filter.agent === "none" ? !task.agent_id : task.agent_id === filter.agent)) &&
    (!filter.repo || task.repo_url === filter.repo) &&
    (!filter.priority || task.priority === filter.priority) &&
    (!filter.state || stateOf(task, around) === filter.state)
  );
}

export const isFree = (agent: Agent) => !agent.current_task_id && agent.status !== "paused";

/** Who would work on a task that is started now. `undefined`: nobody can; "": the server chooses. */
export function starterOf(task: Task, agents: Agent[]): string | undefined {
  if (task.agent_id) {
    const agent = agents.find((each) => each.id === task.agent_id);
    return agent && !isFree(agent) && agent.current_task_id !== task.id ? undefined : task.agent_id;
  }
  if (task.squad_id) return "";
  const free = agents.filter(isFree);
  return (free.find((each) => each.adapter !== "external") ?? free[0])?.id;
}

/** A pull request that can still be merged. */
export const hasOpenPull = (task: Task) =>
  task.pull_request_number > 0 && !["merged", "closed"].includes(task.pull_request_state);

export type Grouping = "status" | "agent" | "repo" | "priority";

export function groupsOf(tasks: Task[], by: Grouping, agents: Agent[], repoName: (url: string) => string) {
  const name: Record<Grouping, (task: Task) => string> = {
    status: (task) => titleOf(task.status),
    agent: (task) => agents.find((each) => each.id === task.agent_id)?.name ?? "No agent",
    repo: (task) => repoName(task.repo_url) || "No repository",
    priority: (task) => task.priority,
  };
  const order = by === "status" ? COLUMNS.map((each) => each.title) : by === "priority" ? [...PRIORITIES] : null;
  const groups = new Map<string, Task[]>();
  for (const task of tasks) groups.set(name[by](task), [...(groups.get(name[by](task)) ?? []), task]);
  const rank = (label: string) => order?.indexOf(label as never) ?? 0;
  return [...groups].sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b));
}
