// Small pictures that cards, rows and the panel share.
import { ChevronDown, ChevronUp, CircleAlert, Equal, type LucideIcon } from "lucide-react";
import { cx } from "@/ui/classes";
import { lookOf } from "@/ui/status";
import type { Agent } from "./model";

const PRIORITIES: Record<string, { icon: LucideIcon; className: string }> = {
  urgent: { icon: CircleAlert, className: "text-bad" },
  high: { icon: ChevronUp, className: "text-warn" },
  medium: { icon: Equal, className: "text-muted" },
  low: { icon: ChevronDown, className: "text-muted" },
};

export function Priority({ value, word }: { value: string; word?: boolean }) {
  const { icon: Icon, className } = PRIORITIES[value] ?? (PRIORITIES.medium as (typeof PRIORITIES)[string]);
  return (
    <span title={`Priority: ${value}`} className={cx("inline-flex items-center gap-1 capitalize", className)}>
      <Icon aria-hidden className="size-3.5 shrink-0" />
      <span className={word ? undefined : "sr-only"}>{word ? value : `Priority ${value}`}</span>
    </span>
  );
}

const TONES: Record<string, string> = {
  ok: "bg-ok",
  bad: "bg-bad",
  warn: "bg-warn",
  info: "bg-info",
  neutral: "bg-line-strong",
  violet: "bg-violet",
  accent: "bg-accent",
};

/** The agent's first letters, with a dot for what it does. */
export function Avatar({ agent }: { agent: Agent | undefined }) {
  if (!agent) return null;
  const look = lookOf("agent", agent.status);
  return (
    <span
      title={`${agent.name}: ${look.label}`}
      className="relative inline-grid size-5 shrink-0 place-items-center rounded-full bg-sunken text-[10px] font-semibold text-muted uppercase"
    >
      <span aria-hidden>{agent.name.slice(0, 2)}</span>
      <span className="sr-only">
        Agent {agent.name}, {look.label}
      </span>
      <span aria-hidden className={cx("absolute -right-0.5 -bottom-0.5 size-2 rounded-full border border-panel", TONES[look.tone])} />
    </span>
  );
}
