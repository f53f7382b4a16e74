// Which cached answers an event makes stale.
import { keys } from "@/api/queries";
import type { LiveEvent } from "./stream";

type Key = readonly unknown[];

// Events that come by the thousand and change nothing but a log.
const LOG_ONLY = new Set(["command_output", "message_delta", "message", "log", "agent_tool", "progress", "agent.thinking"]);

export function staleKeys(event: LiveEvent): Key[] {
  if (LOG_ONLY.has(event.type)) return [];
  const stale: Key[] = [];
  const kind = event.type;
  if (event.task_id) stale.push(keys.task(event.task_id));
  if (event.run_id) stale.push(keys.run(event.run_id), keys.runs);
  if (event.session_id) stale.push(keys.session(event.session_id));
  if (event.build_id) stale.push(keys.build(event.build_id));
  if (/^(task|pr)_|^execution_(started|completed)/.test(kind)) stale.push(keys.board, keys.tasks, keys.usage);
  if (/^agent_(updated|deleted)/.test(kind)) stale.push(keys.agents, keys.board, keys.usage);
  if (kind.startsWith("squad_")) stale.push(keys.squads);
  // The preview of a build is as its sandbox is.
  if (/^sandbox_/.test(kind)) stale.push(keys.sandboxes, keys.usage, keys.builds);
  if (/^session_(updated|deleted)/.test(kind)) stale.push(keys.sessions);
  if (/^build|^iteration_completed|^snapshot/.test(kind)) stale.push(keys.builds);
  if (kind.startsWith("approval_")) stale.push(keys.approvals, keys.usage);
  if (/^cost_|^budget_/.test(kind)) stale.push(keys.costs, keys.usage);
  return stale;
}
