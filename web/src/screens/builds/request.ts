// What the form of a new build becomes.
import type { Schemas } from "@/api/client";

export type Runner = "files" | "command" | "llm";

export interface BuildForm {
  project: string;
  goal: string;
  runner: Runner;
  files: Record<string, string>;
  agentId: string;
  install: string;
  /** One command a line. */
  checks: string;
  skipChecks: boolean;
  start: string;
  port: string;
  template: string;
  maxFixes: string;
  /** NAME=value, one a line. */
  env: string;
}

export const EMPTY: BuildForm = {
  project: "",
  goal: "",
  runner: "files",
  files: {},
  agentId: "",
  install: "",
  checks: "",
  skipChecks: false,
  start: "",
  port: "",
  template: "",
  maxFixes: "2",
  env: "",
};

const lines = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** What is missing, by field. */
export function missing(form: BuildForm): Partial<Record<keyof BuildForm, string>> {
  const problems: Partial<Record<keyof BuildForm, string>> = {};
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(form.project)) problems.project = "Letters, digits, dots, dashes and underscores; a letter or digit first.";
  if (form.runner === "files" && Object.keys(form.files).length === 0) problems.files = "Choose at least one file.";
  if (form.runner !== "files" && !form.goal.trim()) problems.goal = "Say what shall be built.";
  if (form.runner === "command" && !form.agentId) problems.agentId = "Choose the agent that writes the files.";
  if (lines(form.env).some((line) => !/^[A-Za-z_][A-Za-z0-9_]*=/.test(line))) problems.env = "Each line is NAME=value.";
  return problems;
}

export function requestOf(form: BuildForm, parentId?: string): Schemas["NewBuild"] {
  const checks = form.skipChecks ? [] : lines(form.checks);
  const files = parentId
    ? Object.entries(form.files).map(([path, content]) => ({ path, new_content: content }))
    : form.files;
  return {
    project: form.project,
    runner: form.runner,
    ...(form.goal.trim() && { goal: form.goal.trim() }),
    ...(form.runner === "files" && { files }),
    ...(form.runner === "command" && { agent_id: form.agentId }),
    ...(parentId && { parent_id: parentId }),
    ...(form.install.trim() && { install_command: form.install.trim() }),
    ...((form.skipChecks || checks.length > 0) && { checks }),
    ...(form.start.trim() && { start_command: form.start.trim() }),
    ...(form.port && { port: Number(form.port) }),
    ...(form.template.trim() && { template: form.template.trim() }),
    ...(form.runner !== "files" && { max_fixes: Number(form.maxFixes) }),
    ...(form.env.trim() && { env: Object.fromEntries(lines(form.env).map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)])) }),
  } as Schemas["NewBuild"];
}

const MAX_BYTES = 8_000_000;

/** Chosen files as texts. Those of a folder lose the folder's own name. */
export async function readFiles(list: FileList): Promise<{ files: Record<string, string>; refused: string[] }> {
  const files: Record<string, string> = {};
  const refused: string[] = [];
  let bytes = 0;
  for (const file of list) {
    const path = file.webkitRelativePath.replace(/^[^/]+\//, "") || file.name;
    if (/(^|\/)(node_modules|\.git)\//.test(path)) continue;
    bytes += file.size;
    try {
      if (bytes > MAX_BYTES) throw new Error("too large");
      files[path] = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      refused.push(path);
    }
  }
  return { files, refused };
}
