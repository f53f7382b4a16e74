import { describe, expect, it } from "vitest";
import { noticeOf } from "./notices";

const event = (type: string, fields: Record<string, unknown>) => ({ id: 1, type, timestamp: "2026-11-16T00:00:00Z", ...fields });

describe("what the user has to know", () => {
  it("is told in his words", () => {
    expect(noticeOf(event("budget_warning", { spent: 8, budget: 10 }))).toEqual({ title: "Most of this month's budget is used up", text: "$8.00 of $10.00" });
    expect(noticeOf(event("budget_warning", { spent: 10, budget: 10 }))?.title).toBe("The budget of this month is used up");
    expect(noticeOf(event("provider_key_refused", { key_id: "a", next_key_id: "b" }))?.text).toBe("The key b is used instead.");
    expect(noticeOf(event("provider_key_refused", { key_id: "a" }))?.text).toBe("There is no other key.");
    expect(noticeOf(event("github_budget_low", { limit: 5000, remaining: 40 }))?.text).toBe("40 of 5000 requests are left.");
    expect(noticeOf(event("sandbox_expiring", { ends_at: "", seconds_left: 300 }))?.text).toContain("In 5:00.");
  });

  it("is told once of each alert, and when it is over", () => {
    const message = "12 sandboxes run; the limit is 10.";
    expect(noticeOf(event("alert_raised", { rule: "active_sandboxes", message }))).toEqual({ title: "Many sandboxes run", text: message, about: "alert active_sandboxes" });
    expect(noticeOf(event("alert_ended", { rule: "active_sandboxes", message }))).toMatchObject({ title: "Over: many sandboxes run", about: "alert active_sandboxes" });
    expect(noticeOf(event("alert_raised", { rule: "new_one", message }))?.title).toBe("new_one");
  });

  it("is not every event", () => {
    expect(noticeOf(event("task_created", {}))).toBeNull();
  });
});
