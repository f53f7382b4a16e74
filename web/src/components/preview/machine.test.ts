import { describe, expect, it } from "vitest";
import { ApiError } from "@/api/client";
import { pathOf, previewState } from "./machine";

const still = { pending: false, error: null };
const unchecked = { pending: true, failed: false };

describe("previewState", () => {
  it("is what the server says, until the page itself was asked", () => {
    for (const server of ["loading", "paused", "resuming", "resume_failed", "expired", "error"] as const)
      expect(previewState({ server, check: unchecked, resume: still })).toBe(server);
    for (const server of ["active", "checking", "blocked"] as const)
      expect(previewState({ server, check: unchecked, resume: still })).toBe("checking");
    expect(previewState({ server: "blocked", check: { pending: false, failed: false, state: "active" }, resume: still })).toBe("active");
    for (const state of ["active", "blocked", "error"])
      expect(previewState({ server: "active", check: { pending: false, failed: false, state }, resume: still })).toBe(state);
    expect(previewState({ server: "active", check: { pending: false, failed: true }, resume: still })).toBe("error");
  });
  it("tells a sandbox that is gone from one that does not answer", () => {
    const failed = (code: string) => ({ pending: false, error: new ApiError(503, code, "") });
    expect(previewState({ server: "paused", check: unchecked, resume: { pending: true, error: null } })).toBe("resuming");
    expect(previewState({ server: "paused", check: unchecked, resume: failed("sandbox_unreachable") })).toBe("resume_failed");
    expect(previewState({ server: "paused", check: unchecked, resume: failed("sandbox_expired") })).toBe("expired");
  });
});

it("makes a path of what was typed", () => {
  expect(pathOf("")).toBe("/");
  expect(pathOf("about?x=1#y")).toBe("/about?x=1#y");
  expect(pathOf("http://3000-x.caisson.localhost:8000/a")).toBe("/a");
  expect(pathOf("javascript:alert(1)")).toBe("/javascript:alert(1)");
});
