import { LoaderCircle } from "lucide-react";
import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { cx } from "./classes";
import { Tip } from "./tip";

type Look = "plain" | "primary" | "danger" | "ghost";

const LOOKS: Record<Look, string> = {
  primary: "bg-accent text-accent-text border-transparent hover:brightness-110",
  plain: "bg-panel text-text border-line hover:bg-hover",
  danger: "bg-bad-soft text-bad border-bad/40 hover:border-bad",
  ghost: "bg-transparent text-muted border-transparent hover:bg-hover hover:text-text",
};

/** How a button looks; also for links that stand among buttons. */
export const buttonClass = (look: Look, small = false, className?: string) =>
  cx(
    "inline-flex items-center justify-center gap-1.5 rounded-md border font-medium whitespace-nowrap select-none transition-colors",
    "disabled:opacity-55 disabled:cursor-not-allowed",
    small ? "h-7 px-2 text-[13px]" : "h-8 px-3",
    LOOKS[look],
    className,
  );

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  small?: boolean;
  /** At work: shows a spinner and cannot be pressed again. */
  busy?: boolean;
  icon?: ReactNode;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({ look = "plain", small, busy, icon, className, children, disabled, ...rest }: Props) {
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled || busy}
      className={buttonClass(look, small, className)}
    >
      {busy ? <LoaderCircle aria-hidden className="size-4 animate-spin" /> : icon}
      {children}
    </button>
  );
}

/** A button that is only a picture; `label` is its name and its tip. */
export function IconButton({ label, className, small, children, ...rest }: Props & { label: string }) {
  return (
    <Tip text={label}>
      <Button
        look="ghost"
        {...rest}
        aria-label={label}
        className={cx("square !px-0", small ? "!size-7" : "!size-8", className)}
      >
        {children}
      </Button>
    </Tip>
  );
}
