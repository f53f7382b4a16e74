// Every state the server knows: its word, its tone, its picture.
import {
  Archive,
  Ban,
  CircleAlert,
  CircleCheck,
  CircleDashed,
  CircleDot,
  CircleX,
  Clock,
  GitMerge,
  GitPullRequest,
  GitPullRequestClosed,
  GitPullRequestDraft,
  LoaderCircle,
  type LucideIcon,
  Pause,
  Play,
  Skull,
} from "lucide-react";
import { Badge, type Tone } from "./badge";

interface Look {
  label: string;
  tone: Tone;
  icon: LucideIcon;
  spin?: boolean;
}

const look = (tone: Tone, icon: LucideIcon) => (label: string): Look => ({ label, tone, icon });
const busy = (label: string): Look => ({ label, tone: "info", icon: LoaderCircle, spin: true });
const idle = look("neutral", CircleDashed);
const waits = look("neutral", Clock);
const off = look("neutral", Ban);
const over = look("neutral", Archive);
const held = look("warn", Clock);
const asleep = look("warn", Pause);
const runs = look("ok", Play);
const well = look("ok", CircleCheck);
const bad = look("bad", CircleX);

/** What most kinds call the same. */
const COMMON = {
  queued: waits("Queued"),
  starting: busy("Starting"),
  running: busy("Running"),
  waiting: held("Waiting"),
  paused: asleep("Paused"),
  done: well("Done"),
  completed: well("Completed"),
  approved: well("Approved"),
  failed: bad("Failed"),
  canceled: off("Canceled"),
  error: look("bad", CircleAlert)("Error"),
};

/** What a kind has for itself, or calls otherwise. */
const OWN = {
  task: {
    backlog: idle("Backlog"),
    pending: look("neutral", CircleDot)("Pending"),
    in_progress: busy("In progress"),
    in_review: look("violet", GitPullRequest)("In review"),
  },
  agent: {
    idle: idle("Idle"),
    initializing: COMMON.starting,
    cloning: busy("Cloning"),
    working: busy("Working"),
    committing: busy("Committing"),
    pushing: busy("Pushing"),
  },
  execution: { succeeded: COMMON.completed },
  run: { succeeded: well("Succeeded"), dead: look("bad", Skull)("Given up") },
  step: { ready: idle("Ready"), pending: idle("Not yet"), skipped: off("Skipped") },
  sandbox: {
    creating: COMMON.starting,
    running: runs("Running"),
    pausing: busy("Pausing"),
    resuming: busy("Resuming"),
    terminating: busy("Ending"),
    terminated: over("Ended"),
    killed: over("Ended"),
  },
  session: { provisioning: COMMON.starting, active: runs("Active"), paused: asleep("Asleep"), archived: over("Archived") },
  build: {
    scheduled: waits("Scheduled"),
    scaffold: busy("Setting up"),
    code: busy("Writing code"),
    deps: busy("Installing"),
    checks: busy("Checking"),
    ready: well("Ready"),
  },
  approval: { pending: look("info", Clock)("Waiting for you"), rejected: bad("Rejected"), expired: off("Expired") },
  pull: {
    open: look("info", GitPullRequest)("Open"),
    draft: look("neutral", GitPullRequestDraft)("Draft"),
    changes_requested: look("warn", CircleAlert)("Changes requested"),
    merged: look("violet", GitMerge)("Merged"),
    closed: look("neutral", GitPullRequestClosed)("Closed"),
  },
} satisfies Record<string, Record<string, Look>>;

export type StateKind = keyof typeof OWN;

/** How a state looks; one that is in no table is shown by its own name. */
export function lookOf(kind: StateKind, state: string): Look {
  const known: Record<string, Look> = { ...COMMON, ...OWN[kind] };
  return known[state] ?? idle(state.replaceAll("_", " ") || "Unknown");
}

export function StatusBadge({ kind, state }: { kind: StateKind; state: string }) {
  const look = lookOf(kind, state);
  return (
    <Badge tone={look.tone} icon={look.icon} spin={look.spin}>
      {look.label}
    </Badge>
  );
}
