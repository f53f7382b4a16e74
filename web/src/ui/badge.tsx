import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { cx } from "./classes";

export type Tone = "neutral" | "ok" | "warn" | "bad" | "info" | "violet" | "accent";

const TONES: Record<Tone, string> = {
  neutral: "bg-sunken text-muted",
  ok: "bg-ok-soft text-ok",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
  info: "bg-info-soft text-info",
  violet: "bg-violet-soft text-violet",
  accent: "bg-accent-soft text-accent",
};

/** A state: always a word, with a picture and a colour. */
export function Badge({ tone = "neutral", icon: Icon, spin, children, className }: {
  tone?: Tone;
  icon?: LucideIcon;
  spin?: boolean;
  children: ReactNode;
  className?: string;
}) {
  return (
    <span
      className={cx(
        "inline-flex items-center gap-1 rounded px-1.5 align-middle py-0.5 text-xs font-medium whitespace-nowrap",
        TONES[tone],
        className,
      )}
    >
      {Icon && <Icon aria-hidden className={cx("size-3.5 shrink-0", spin && "animate-spin")} />}
      {children}
    </span>
  );
}
