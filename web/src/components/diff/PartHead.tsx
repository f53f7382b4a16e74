import { ChevronsDown, ChevronsUp, ChevronsUpDown, type LucideIcon } from "lucide-react";
import { cx } from "@/ui/classes";
import { plural } from "@/ui/format";
import { type Gap, hiddenIn, STEP } from "./around";

/** What stands between two parts of a diff: where the next one is, and buttons for the lines that are left out. */
export function PartHead({ gap, first, text, part, current, busy, onOpen }: {
  gap: Gap;
  /** Nothing stands above it. */
  first: boolean;
  /** The head of the part below it; none behind the last part. */
  text?: string;
  part?: number;
  current?: boolean;
  busy: boolean;
  onOpen?: (top: number, bottom: number) => void;
}) {
  const hidden = hiddenIn(gap);
  const button = (label: string, Icon: LucideIcon, top: number, bottom: number) => (
    <button
      type="button"
      disabled={busy}
      aria-label={label}
      title={label}
      onClick={() => onOpen?.(top, bottom)}
      className="square grid size-6 shrink-0 place-items-center rounded text-muted hover:bg-hover hover:text-text disabled:opacity-55"
    >
      <Icon aria-hidden className="size-4" />
    </button>
  );
  const few = hidden <= STEP;
  return (
    <div data-part={part} className={cx("diff-part", current && "diff-part-current")}>
      {onOpen && hidden > 0 && (
        <span className="-my-0.5 -ml-2 flex">
          {few && button(`Show ${plural(hidden, "line")}`, ChevronsUpDown, hidden, 0)}
          {!few && !first && button(`Show ${STEP} lines below`, ChevronsDown, STEP, 0)}
          {!few && text !== undefined && button(`Show ${STEP} lines above`, ChevronsUp, 0, STEP)}
        </span>
      )}
      <span className="min-w-0 truncate">{text}</span>
    </div>
  );
}
