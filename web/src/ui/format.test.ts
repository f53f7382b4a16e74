import { expect, test } from "vitest";
import { forecast } from "@/screens/costs/Costs";
import { bytes, dollars, forgeLink, plural, repoName, safeLink } from "./format";
import { ago, duration } from "./time";

test("sizes, money and counts", () => {
  expect([0, 1023, 1024, 1.5 * 2 ** 20, 25 * 2 ** 30].map(bytes)).toEqual(["0 B", "1023 B", "1 KB", "1.5 MB", "25 GB"]);
  expect([0, 0.00002, 0.0123, 1.5].map(dollars)).toEqual(["$0.00", "< $0.0001", "$0.0123", "$1.50"]);
  expect([plural(1, "sandbox", "sandboxes"), plural(2, "task")]).toEqual(["1 sandbox", "2 tasks"]);
});

test("durations and how long ago", () => {
  expect([12, 4200, 59_000, 187_000, 7_500_000, 273_600_000].map(duration)).toEqual(["12 ms", "4.2 s", "59 s", "3:07", "2 h 5 min", "3 d 4 h"]);
  const now = Date.parse("2026-01-01T12:00:00Z");
  expect(ago("2026-01-01T11:59:58Z", now)).toBe("just now");
  expect(ago("2026-01-01T11:57:00Z", now)).toBe("3 min ago");
  expect(ago("2025-12-29T10:00:00Z", now)).toBe("3 d ago");
  expect(ago("2025-08-27T12:00:00Z", now)).toMatch(/Aug.* 2025/);
});

test("only web addresses become links", () => {
  expect(safeLink("javascript:alert(1)")).toBeUndefined();
  expect(safeLink("https://example.org/pull/1")).toBe("https://example.org/pull/1");
  expect(repoName("https://forge.example/owner/name.git")).toBe("owner/name");
});

test("links to pull requests lead to GitHub, or to what stands for it", () => {
  const pull = (origin: string, forge = "https://github.com") => forgeLink(`${origin}/o/r/pull/1`, forge) !== undefined;
  expect(pull("https://github.com")).toBe(true);
  expect(pull("http://github.com")).toBe(false);
  expect(pull("https://github.com.evil.example")).toBe(false);
  expect(pull("https://github.com@evil.example")).toBe(false);
  expect(pull("https://git.example", "https://git.example")).toBe(true);
  expect(pull("http://git.example", "https://git.example")).toBe(false);
  expect(pull("http://127.0.0.1:9000", "http://127.0.0.1:9000")).toBe(true);
  expect(pull("http://127.0.0.1:9001", "http://127.0.0.1:9000")).toBe(false);
  expect(forgeLink("javascript:alert(1)", "javascript:")).toBeUndefined();
});

test("a forecast goes on at the pace of the month", () => {
  expect(forecast(15, new Date(2026, 10, 16, 0, 0))).toBeCloseTo(30);
});
