import { expect, it } from "vitest";
import { feedbackOf } from "./review";

it("tells the agent place, line and comment, in the order of the files", () => {
  const text = feedbackOf("Two things.", [
    { id: 2, path: "b.c", side: "LEFT", line: 3, quote: "gone();", text: "Keep this." },
    { id: 1, path: "a.c", side: "RIGHT", line: 12, quote: "  return 1;", text: "Return 0." },
  ]);
  expect(text).toBe(
    "Two things.\n\na.c:12\n>   return 1;\nReturn 0.\n\nb.c:3 (before the change)\n> gone();\nKeep this.",
  );
});
