import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { cx } from "@/ui/classes";

const TONES = {
  neutral: "bg-panel text-muted",
  info: "bg-info-soft text-info",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
};

/** What stands in the place of the frame. `state` is for tests and styles. */
export function StateCard({ state, tone = "neutral", icon: Icon, spin, title, children, actions }: {
  state: string;
  tone?: keyof typeof TONES;
  icon: LucideIcon;
  spin?: boolean;
  title: ReactNode;
  children?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <section
      role="status"
      aria-label="Preview"
      data-state={state}
      className="mx-auto mt-[8vh] flex w-full max-w-lg flex-col items-center gap-2 px-4 pb-8 text-center"
    >
      <span className={cx("mb-1 rounded-full p-3", TONES[tone])}>
        <Icon aria-hidden className={cx("size-6", spin && "animate-spin")} />
      </span>
      <p className="text-base font-semibold">{title}</p>
      {children && <div className="w-full text-muted">{children}</div>}
      {actions && <div className="mt-3 flex flex-wrap justify-center gap-2">{actions}</div>}
    </section>
  );
}
