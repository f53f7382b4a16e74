import { describe, expect, it } from "vitest";
import { type Agent, type BoardData, groupsOf, hasOpenPull, matches, positionBefore, starterOf, stateOf, type Task, withMoves } from "./model";

const task = (id: string, fields: Partial<Task> = {}) =>
  ({ id, number: 1, title: id, description: "", status: "pending", priority: "medium", position: 1, blocked_by: [], git_branch: "", repo_url: "", pull_request_number: 0, pull_request_state: "", agent_id: null, squad_id: null, ...fields }) as Task;
const agent = (id: string, fields: Partial<Agent> = {}) => ({ id, name: id, status: "idle", adapter: "command", current_task_id: null, ...fields }) as Agent;
const board = (...tasks: Task[]): BoardData => ({
  columns: ["pending", "in_progress", "done"].map((status) => {
    const own = tasks.filter((each) => each.status === status);
    return { status, title: status, count: own.length, tasks: own };
  }),
  wip: { in_progress: 0, agents: 0, free_agents: 0 },
});
const around = { asked: new Set<string>(), tasks: new Map<string, Task>() };

describe("moves that are not answered yet", () => {
  it("take the task out of its column and put it in its place", () => {
    const given = board(task("a"), task("b", { status: "done", position: 1 }), task("c", { status: "done", position: 2 }));
    const shown = withMoves(given, { a: { status: "done", position: 1.5 } });
    expect(shown.columns.map((column) => [column.count, column.tasks.map((each) => each.id).join("")])).toEqual([[0, ""], [0, ""], [3, "bac"]]);
    expect(withMoves(given, { a: { status: "done" } }).columns[2]?.tasks.map((each) => each.id)).toEqual(["b", "c", "a"]);
    expect(withMoves(given, {})).toBe(given);
  });
  it("find a position between two cards", () => {
    const list = [task("a", { position: 1 }), task("b", { position: 2 })];
    expect([0, 1, 2].map((index) => positionBefore(list, index))).toEqual([0, 1.5, undefined]);
  });
});

describe("who starts a task", () => {
  it("is its agent, the next free one, or nobody", () => {
    const busy = agent("busy", { current_task_id: "x" });
    expect(starterOf(task("t"), [busy, agent("outside", { adapter: "external" }), agent("free")])).toBe("free");
    expect(starterOf(task("t"), [busy, agent("asleep", { status: "paused" })])).toBeUndefined();
    expect(starterOf(task("t", { agent_id: "busy" }), [busy, agent("free")])).toBeUndefined();
    expect(starterOf(task("t", { squad_id: "s" }), [busy])).toBe("");
  });
});

describe("filters", () => {
  it("look at the text, the agent, the priority and the state", () => {
    const one = task("a", { title: "Fix the login", agent_id: "ada", priority: "high", blocked_by: ["b"] });
    const here = { ...around, tasks: new Map([["b", task("b")]]) };
    expect(stateOf(one, here)).toBe("blocked");
    expect(matches(one, { q: "login fix", agent: "ada", priority: "high", state: "blocked" }, here)).toBe(true);
    for (const filter of [{ q: "logout" }, { agent: "none" }, { priority: "low" }, { state: "running" }, { repo: "x" }])
      expect(matches(one, filter, here)).toBe(false);
  });
  it("group in a sensible order", () => {
    const groups = groupsOf([task("a", { priority: "low" }), task("b", { priority: "urgent" })], "priority", [], (url) => url);
    expect(groups.map(([label]) => label)).toEqual(["urgent", "low"]);
  });
});

it("knows a pull request that can be merged", () => {
  expect(hasOpenPull(task("a", { pull_request_number: 3, pull_request_state: "approved" }))).toBe(true);
  expect(hasOpenPull(task("a", { pull_request_number: 3, pull_request_state: "merged" }))).toBe(false);
  expect(hasOpenPull(task("a"))).toBe(false);
});
