import { expect, it } from "vitest";
import { EMPTY, missing, requestOf } from "./request";

it("says only what was filled in", () => {
  expect(requestOf({ ...EMPTY, project: "shop", files: { "index.html": "x" } })).toEqual({ project: "shop", runner: "files", files: { "index.html": "x" } });
});

it("changes files of the version it goes on from", () => {
  const request = requestOf({ ...EMPTY, project: "shop", files: { a: "x" } }, "parent");
  expect(request).toMatchObject({ parent_id: "parent", files: [{ path: "a", new_content: "x" }] });
});

it("passes on commands, variables and the agent", () => {
  const form = { ...EMPTY, project: "p", runner: "command" as const, goal: " A page ", agentId: "a1", checks: "one\n\ntwo", env: "A=1\nB=x=y", port: "8080", maxFixes: "0" };
  expect(requestOf(form)).toEqual({
    project: "p",
    runner: "command",
    goal: "A page",
    agent_id: "a1",
    checks: ["one", "two"],
    port: 8080,
    max_fixes: 0,
    env: { A: "1", B: "x=y" },
  });
  expect(requestOf({ ...form, skipChecks: true }).checks).toEqual([]);
});

it("knows what is missing", () => {
  expect(Object.keys(missing(EMPTY))).toEqual(["project", "files"]);
  expect(Object.keys(missing({ ...EMPTY, project: "p", runner: "command" }))).toEqual(["goal", "agentId"]);
  expect(missing({ ...EMPTY, project: "p", runner: "llm", goal: "x", env: "no" })).toHaveProperty("env");
});
