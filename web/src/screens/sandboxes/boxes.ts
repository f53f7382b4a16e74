// A sandbox as the list shows it: what runs (E2B's list) and what the work platform knows of it (its rows).
import type { Schemas } from "@/api/client";
import type { SandboxInfo } from "@/api/e2b";

export type Row = Schemas["Sandbox"];
export type OwnerKind = "task" | "session" | "build" | "user";

export interface Box {
  /** What its page and the platform's routes are called by. */
  id: string;
  /** What E2B's routes are called by. */
  backendId: string;
  status: string;
  template: string;
  createdAt: string;
  endAt?: string;
  endedAt?: string;
  /** Why it ended, or what is wrong with it. */
  reason: string;
  owner: { kind: OwnerKind; id: string; agentId: string };
  /** Whose it is, if it is another user's: then it can only be looked at here. */
  user?: string;
  repoUrl: string;
  branch: string;
  /** What its maker wrote on it, without the platform's own marks. */
  metadata: Record<string, string>;
}

const ENDED = new Set(["terminated", "killed"]);
const CHANGING = new Set(["creating", "pausing", "resuming", "terminating"]);

export const hasEnded = (status: string) => ENDED.has(status);
export const isChanging = (status: string) => CHANGING.has(status);

const MARKS = /^(caisson_.*|(task|build|session|agent|execution|squad)(_id|Id))$/;

export const ownMetadata = (metadata: Record<string, string> = {}) =>
  Object.fromEntries(Object.entries(metadata).filter(([name]) => !MARKS.test(name)));

/** Why a sandbox ended, in words. */
const REASONS: Record<string, string> = {
  request: "on request",
  timeout: "its time was over",
  out_of_memory: "out of memory",
  envd_killed: "its first process was killed",
  envd_exited: "its first process ended",
  host_restarted: "the host was restarted",
  server_down: "the server was down",
};

export const reasonText = (reason: string | undefined) => (reason ? (REASONS[reason] ?? reason) : "");

function fromRow(row: Row): Box {
  return {
    id: row.id,
    backendId: row.backend_id || row.id,
    status: row.status,
    template: "",
    createdAt: row.created_at,
    endAt: row.ends_at,
    endedAt: row.destroyed_at,
    reason: reasonText(row.last_error),
    owner: { kind: (row.holder_kind || "user") as OwnerKind, id: row.holder_id ?? "", agentId: row.agent_id ?? "" },
    repoUrl: row.repo_url ?? "",
    branch: row.branch_name ?? "",
    metadata: {},
  };
}

/** Newest first. While the platform changes something its word counts, else the engine's. */
export function mergeBoxes(running: SandboxInfo[], rows: Row[]): Box[] {
  const boxes = new Map(rows.map((row) => [row.backend_id || row.id, fromRow(row)]));
  for (const info of running) {
    const known = boxes.get(info.sandboxID);
    boxes.set(info.sandboxID, {
      id: known?.id ?? info.sandboxID,
      backendId: info.sandboxID,
      status: known && isChanging(known.status) ? known.status : info.state,
      template: info.alias ?? info.templateID,
      createdAt: known?.createdAt ?? info.startedAt,
      endAt: info.endAt,
      reason: known?.status === "error" ? known.reason : "",
      owner: known?.owner ?? { kind: "user", id: "", agentId: "" },
      repoUrl: known?.repoUrl ?? "",
      branch: known?.branch ?? "",
      metadata: ownMetadata(info.metadata),
    });
  }
  return [...boxes.values()].sort((a, b) => b.createdAt.localeCompare(a.createdAt));
}

/** Those of others, for administrators. */
export const othersBoxes = (rows: Row[], me: string, names: ReadonlyMap<string, string>): Box[] =>
  rows
    .filter((row) => row.owner_id !== me)
    .map((row) => ({ ...fromRow(row), user: names.get(row.owner_id ?? "") ?? row.owner_id ?? "" }));

export interface BoxFilter {
  q: string;
  states: string[];
  owners: string[];
  template: string;
  /** With those of other users. */
  everybody: boolean;
}

const list = (text: string | undefined) => (text ? text.split(",") : []);

export const filterOf = (search: Record<string, string | undefined>): BoxFilter => ({
  q: search.q ?? "",
  states: list(search.state),
  owners: list(search.owner),
  template: search.template ?? "",
  everybody: search.scope === "all",
});

export const isFiltered = ({ q, states, owners, template, everybody }: BoxFilter) =>
  Boolean(q || states.length || owners.length || template || everybody);

/** Which of the three words for people a status belongs to. */
const stateGroup = (status: string) => (hasEnded(status) ? "ended" : status === "paused" || status === "pausing" ? "paused" : "running");

/** Ended ones are shown only if they are asked for. */
export function matching(boxes: Box[], filter: BoxFilter): Box[] {
  const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
  return boxes.filter((box) => {
    const group = stateGroup(box.status);
    if (filter.states.length ? !filter.states.includes(group) : group === "ended") return false;
    if (filter.owners.length && !filter.owners.includes(box.owner.kind)) return false;
    if (filter.template && box.template !== filter.template) return false;
    const text = [box.id, box.backendId, box.template, box.repoUrl, box.branch, ...Object.entries(box.metadata).flat()].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
