// A unified diff of git, cut into its files. Only the heads are read here: a file's lines are parsed when
// it comes into view, so a diff of hundreds of files opens at once.
import { type ChangeData, type HunkData, parseDiff } from "react-diff-view";

export type FileStatus = "added" | "modified" | "deleted" | "renamed";

export interface PatchFile {
  path: string;
  /** Differs from `path` if the file was renamed. */
  oldPath: string;
  status: FileStatus;
  additions: number;
  deletions: number;
  binary: boolean;
  /** The server left out its end. */
  cut: boolean;
  /** Lines of the diff, and how many parts they make. */
  lines: number;
  parts: number;
  /** From the first @@ on. */
  body: string;
}

const START = "diff --git ";
const CUT = "\\ The rest is not shown.";

export function splitPatch(patch: string): PatchFile[] {
  const files: PatchFile[] = [];
  let at = patch.startsWith(START) ? 0 : patch.indexOf(`\n${START}`) + 1;
  if (at === 0 && !patch.startsWith(START)) return files;
  while (at < patch.length) {
    const next = patch.indexOf(`\n${START}`, at);
    const end = next < 0 ? patch.length : next + 1;
    files.push(readFile(patch.slice(at, end)));
    at = end;
  }
  return files;
}

function readFile(text: string): PatchFile {
  const bodyAt = text.startsWith("@@") ? 0 : text.indexOf("\n@@") + 1;
  const head = (bodyAt > 0 ? text.slice(0, bodyAt) : text).split("\n");
  const body = bodyAt > 0 ? text.slice(bodyAt) : "";
  const [first, second] = pathsOfFirstLine(head[0] ?? "");
  const file: PatchFile = {
    path: second,
    oldPath: first,
    status: "modified",
    additions: 0,
    deletions: 0,
    binary: false,
    cut: text.includes(`\n${CUT}`),
    lines: 0,
    parts: 0,
    body,
  };
  for (const line of head.slice(1)) readHeadLine(file, line);
  if (file.status === "added") file.oldPath = file.path;
  if (file.status === "deleted") file.path = file.oldPath;
  countLines(file);
  return file;
}

function readHeadLine(file: PatchFile, line: string) {
  if (line.startsWith("new file")) file.status = "added";
  else if (line.startsWith("deleted file")) file.status = "deleted";
  else if (line.startsWith("rename from ")) {
    file.status = "renamed";
    file.oldPath = unquote(line.slice(12));
  } else if (line.startsWith("rename to ")) file.path = unquote(line.slice(10));
  else if (line.startsWith("Binary files ") || line.startsWith("GIT binary patch")) file.binary = true;
  else if (line.startsWith("--- ")) {
    const path = unquote(line.slice(4));
    if (path === "/dev/null") file.status = "added";
    else file.oldPath = path.slice(2);
  } else if (line.startsWith("+++ ")) {
    const path = unquote(line.slice(4));
    if (path === "/dev/null") file.status = "deleted";
    else file.path = path.slice(2);
  }
}

function countLines(file: PatchFile) {
  let at = 0;
  while (at < file.body.length) {
    switch (file.body[at]) {
      case "+":
        file.additions += 1;
        break;
      case "-":
        file.deletions += 1;
        break;
      case "@":
        file.parts += 1;
    }
    file.lines += 1;
    const end = file.body.indexOf("\n", at);
    if (end < 0) break;
    at = end + 1;
  }
}

/** "a/x b/x": the two are alike unless the file was renamed, and then other lines say the names. */
function pathsOfFirstLine(line: string): [string, string] {
  const names = line.slice(START.length);
  if (names.startsWith('"')) {
    const end = /^"(?:[^"\\]|\\.)*"/.exec(names)?.[0] ?? names;
    return [unquote(end).slice(2), unquote(names.slice(end.length + 1)).slice(2)];
  }
  const half = (names.length - 1) / 2;
  return [names.slice(2, half), names.slice(half + 3)];
}

/** A name as git prints it: with unusual characters in quotes, with spaces before a tab. */
export function unquote(name: string): string {
  if (!name.startsWith('"')) return name.replace(/\t$/, "");
  const bytes: number[] = [];
  const inner = name.slice(1, name.lastIndexOf('"'));
  const escapes: Record<string, number> = { n: 10, t: 9, r: 13, '"': 34, "\\": 92 };
  for (let at = 0; at < inner.length; ) {
    const octal = /^\\([0-3][0-7]{2})/.exec(inner.slice(at, at + 4));
    if (octal) {
      bytes.push(Number.parseInt(octal[1]!, 8));
      at += 4;
    } else if (inner[at] === "\\") {
      bytes.push(escapes[inner[at + 1] ?? ""] ?? 63);
      at += 2;
    } else {
      const character = String.fromCodePoint(inner.codePointAt(at)!);
      bytes.push(...new TextEncoder().encode(character));
      at += character.length;
    }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** The parts of one file. Its head is written anew: the parser stumbles over names with spaces. */
export function hunksOf(file: PatchFile, ignoreSpace: boolean): HunkData[] {
  if (!file.body) return [];
  const [parsed] = parseDiff(`diff --git a/f b/f\n--- a/f\n+++ b/f\n${file.body}`, { nearbySequences: "zip" });
  const hunks = parsed?.hunks ?? [];
  if (!ignoreSpace) return hunks;
  return hunks.map(withoutSpaceChanges).filter((hunk) => hunk.changes.some((each) => each.type !== "normal"));
}

const squeezed = (text: string) => text.replace(/\s+/g, "");

/** Lines that differ only in white space become lines that do not differ. */
function withoutSpaceChanges(hunk: HunkData): HunkData {
  const changes: ChangeData[] = [];
  const old: Extract<ChangeData, { type: "delete" }>[] = [];
  const fresh: Extract<ChangeData, { type: "insert" }>[] = [];
  const flush = () => {
    const same = old.length === fresh.length && old.every((each, index) => squeezed(each.content) === squeezed(fresh[index]!.content));
    if (same)
      fresh.forEach((each, index) =>
        changes.push({
          type: "normal",
          isNormal: true,
          content: each.content,
          oldLineNumber: old[index]!.lineNumber,
          newLineNumber: each.lineNumber,
        }),
      );
    else changes.push(...old, ...fresh);
    old.length = 0;
    fresh.length = 0;
  };
  for (const change of hunk.changes) {
    if (change.type === "delete") old.push(change);
    else if (change.type === "insert") fresh.push(change);
    else {
      flush();
      changes.push(change);
    }
  }
  flush();
  return { ...hunk, changes };
}

/** A small number that changes with the text: to notice that a viewed file changed since. */
export function fingerprint(text: string): number {
  let sum = text.length;
  for (let at = 0; at < text.length; at += 1) sum = (sum * 31 + text.charCodeAt(at)) | 0;
  return sum;
}

/** Patches of single files, as the comparison of builds gives them, as one diff. */
export function joinPatches(files: { path: string; change: FileStatus | string; patch: string }[]): string {
  return files
    .map((file) => {
      const kind = file.change === "added" ? "new file mode 100644\n" : file.change === "deleted" ? "deleted file mode 100644\n" : "";
      const body = file.patch || `Binary files a/${file.path} and b/${file.path} differ\n`;
      return `diff --git a/${file.path} b/${file.path}\n${kind}${body.endsWith("\n") ? body : `${body}\n`}`;
    })
    .join("");
}
