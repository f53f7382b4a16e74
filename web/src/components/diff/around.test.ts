import { expect, it } from "vitest";
import { fits, gapsOf, hiddenIn, linesOf } from "./around";
import { hunksOf, splitPatch } from "./patch";

const now = Array.from({ length: 60 }, (_, at) => (at === 9 ? "new ten" : at === 40 ? "inserted" : `line ${at > 40 ? at : at + 1}`));
const patch = `diff --git a/f b/f
--- a/f
+++ b/f
@@ -9,3 +9,3 @@
 line 9
-line 10
+new ten
 line 11
@@ -40,2 +40,3 @@
 line 40
+inserted
 line 41
`;
const hunks = hunksOf(splitPatch(patch)[0]!, false);

it("knows what a diff leaves out", () => {
  expect(gapsOf(hunks, null, []).map(hiddenIn)).toEqual([8, 28, Number.POSITIVE_INFINITY]);
  expect(gapsOf(hunks, now, [[0, 3]]).map(hiddenIn)).toEqual([5, 28, 18]);
});

it("shows lines by both their numbers", () => {
  const [before, between, behind] = gapsOf(hunks, now, [[0, 2], [1, 2], [2, 0]]).map((gap) => linesOf(gap, now));
  const told = (hunk: { changes: object[] } | null) => hunk?.changes.map((each) => Object.values(each).join(" "));
  expect(before!.above).toBeNull();
  expect(told(before!.below)).toEqual(["normal true 7 7 line 7", "normal true 8 8 line 8"]);
  expect(told(between!.above)).toEqual(["normal true 12 12 line 12"]);
  expect(told(between!.below)).toEqual(["normal true 38 38 line 38", "normal true 39 39 line 39"]);
  expect(told(behind!.above)).toEqual(["normal true 42 43 line 42", "normal true 43 44 line 43"]);
});

it("notices that a file has changed since", () => {
  expect(fits(hunks, now)).toBe(true);
  expect(fits(hunks, ["another", ...now])).toBe(false);
});
