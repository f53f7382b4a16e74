import { Check } from "lucide-react";
import type { ReactNode } from "react";
import { cx } from "./classes";

/** A filter that is on or off. */
export function Chip({ on, onChange, children }: { on: boolean; onChange: (on: boolean) => void; children: ReactNode }) {
  return (
    <button
      type="button"
      aria-pressed={on}
      onClick={() => onChange(!on)}
      className={cx(
        "inline-flex h-7 items-center gap-1 rounded-full border px-2.5 text-[13px] whitespace-nowrap transition-colors",
        on ? "border-accent bg-accent-soft font-medium text-accent" : "border-line bg-panel text-muted hover:bg-hover hover:text-text",
      )}
    >
      {on && <Check aria-hidden className="size-3.5" />}
      {children}
    </button>
  );
}
