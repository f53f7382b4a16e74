import { describe, expect, it } from "vitest";
import { hunksOf, joinPatches, splitPatch, unquote } from "./patch";

const PATCH = `diff --git a/src/a.c b/src/a.c
index 111..222 100644
--- a/src/a.c
+++ b/src/a.c
@@ -1,3 +1,3 @@
 int main() {
-  return 1;
+    return 1;
 }
@@ -10,2 +10,3 @@ int other()
 x
+y
 z
diff --git a/old name.txt b/new name.txt
similarity index 90%
rename from old name.txt
rename to new name.txt
diff --git a/logo.png b/logo.png
new file mode 100644
index 000..333
Binary files /dev/null and b/logo.png differ
diff --git "a/\\303\\244.txt" "b/\\303\\244.txt"
deleted file mode 100644
--- "a/\\303\\244.txt"
+++ /dev/null
@@ -1 +0,0 @@
--- not a head
`;

describe("splitPatch", () => {
  const files = splitPatch(PATCH);
  it("names every file, what happened to it and how much", () => {
    expect(files.map((file) => [file.path, file.status, file.additions, file.deletions, file.binary])).toEqual([
      ["src/a.c", "modified", 2, 1, false],
      ["new name.txt", "renamed", 0, 0, false],
      ["logo.png", "added", 0, 0, true],
      ["ä.txt", "deleted", 0, 1, false],
    ]);
    expect(files[1]!.oldPath).toBe("old name.txt");
    expect(files[0]!.parts).toBe(2);
  });
  it("finds nothing in nothing", () => {
    expect(splitPatch("")).toEqual([]);
    expect(splitPatch("no diff at all\n")).toEqual([]);
  });
});

describe("hunksOf", () => {
  const [file] = splitPatch(PATCH);
  it("has line numbers of both sides", () => {
    const [first, second] = hunksOf(file!, false);
    expect(first!.changes.map((change) => change.type)).toEqual(["normal", "delete", "insert", "normal"]);
    expect(second!.changes[1]).toMatchObject({ type: "insert", lineNumber: 11, content: "y" });
  });
  it("leaves out parts where only white space changed", () => {
    const hunks = hunksOf(file!, true);
    expect(hunks).toHaveLength(1);
    expect(hunks[0]!.newStart).toBe(10);
  });
});

it("joins patches of single files", () => {
  const patch = joinPatches([
    { path: "a.html", change: "added", patch: "--- /dev/null\n+++ b/a.html\n@@ -0,0 +1 @@\n+x\n" },
    { path: "b.bin", change: "modified", patch: "" },
  ]);
  expect(splitPatch(patch).map((file) => [file.path, file.status, file.binary])).toEqual([
    ["a.html", "added", false],
    ["b.bin", "modified", true],
  ]);
});

it("reads names in quotes", () => {
  expect(unquote('"b/a \\"b\\" \\303\\251"')).toBe('b/a "b" é');
  expect(unquote("b/with space\t")).toBe("b/with space");
});
