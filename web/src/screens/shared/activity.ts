// What of a task's events tells a reader something.
import type { LiveEvent } from "@/live/stream";

export interface Entry {
  id: number;
  time: string;
  kind: "said" | "did" | "failed" | "reached";
  text: string;
}

const text = (event: LiveEvent, ...names: string[]) => {
  for (const name of names) if (typeof event[name] === "string" && event[name]) return event[name] as string;
  return "";
};

const STEPS: Record<string, string> = {
  provision: "The sandbox is there",
  clone: "The repository is cloned",
  branch: "The branch is made",
  agent: "The agent has finished",
  commit: "The changes are committed",
  push: "The branch is pushed",
  pull_request: "The pull request is open",
};

export function entryOf(event: LiveEvent): Entry | null {
  const entry = (kind: Entry["kind"], told: string): Entry | null => (told ? { id: event.id, time: event.timestamp, kind, text: told } : null);
  switch (event.type) {
    case "message":
      return entry("said", text(event, "message"));
    case "agent_tool":
      return entry("did", `Used ${text(event, "tool")}`);
    case "file_changed":
      return entry("did", `${text(event, "change") || "changed"} ${text(event, "path")}`);
    case "execution_started":
      return entry("reached", "The work began");
    case "execution_step":
      if (event.state === "done") return entry("reached", STEPS[text(event, "step")] ?? "");
      return event.state === "failed" ? entry("failed", `${text(event, "step")}: ${text(event, "message")}`) : null;
    case "pr_created":
      return entry("reached", `Pull request #${event.pr_number} was opened`);
    case "pr_approved":
      return entry("reached", `${text(event, "reviewer")} approved the pull request`);
    case "pr_changes_requested":
      return entry("reached", `${text(event, "reviewer")} asked for changes`);
    case "pr_merged":
      return entry("reached", "The pull request was merged");
    case "pr_closed":
      return entry("failed", "The pull request was closed");
    case "error":
      return entry("failed", text(event, "message"));
    default:
      return null;
  }
}
