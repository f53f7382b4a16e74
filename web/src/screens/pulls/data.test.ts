import { expect, it } from "vitest";
import { lastReviews, type PullRequest, stateOf, type Task, verdictOf } from "./data";

const check = (status: string, conclusion = "") => ({ name: "c", status, conclusion, url: "" });

it("sums checks up: a failure counts more than one that runs", () => {
  expect(verdictOf([])).toBe("none");
  expect(verdictOf([check("completed", "success"), check("completed", "skipped")])).toBe("passed");
  expect(verdictOf([check("completed", "success"), check("in_progress")])).toBe("running");
  expect(verdictOf([check("queued"), check("completed", "timed_out")])).toBe("failed");
});

it("takes the last decision of every reviewer; a comment takes none back", () => {
  const review = (author: string, state: string) => ({ id: 1, url: "", author, body: "", state, created_at: "" });
  const all = [review("ann", "changes_requested"), review("ann", "approved"), review("ann", "commented"), review("bob", "commented")];
  expect(lastReviews(all).map((each) => `${each.author} ${each.state}`)).toEqual(["ann approved", "bob commented"]);
});

it("believes GitHub more than what was told", () => {
  const task = { pull_request_state: "approved" } as Task;
  expect(stateOf(task, undefined)).toBe("open");
  expect(stateOf(task, { merged: true, state: "closed" } as PullRequest)).toBe("merged");
  expect(stateOf(task, { merged: false, state: "open", draft: true } as PullRequest)).toBe("draft");
});
