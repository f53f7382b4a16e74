import { ChevronRight, CircleCheck, CircleX, LoaderCircle, Scissors } from "lucide-react";
import { memo } from "react";
import { cx } from "@/ui/classes";
import { CopyButton } from "@/ui/copy";
import { plural } from "@/ui/format";
import { duration, Elapsed, exact } from "@/ui/time";
import { LineText } from "./LineText";
import { placeName } from "./places";
import { plain } from "./rows";
import type { LogGroup, LogLine, Times } from "./types";

const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });

function timeOf(line: LogLine, times: Times, began: number) {
  return times === "absolute" ? CLOCK.format(new Date(line.time)) : `+${duration(Date.parse(line.time) - began)}`;
}

interface RowProps {
  line: LogLine;
  /** null = the log is not loaded from its beginning, so nobody knows. */
  number: number | null;
  times: Times;
  began: number;
  wrap: boolean;
  needle: string;
  selected: boolean;
  /** The hit that the search is at. */
  current: boolean;
  onSelect: (id: number, address: string) => void;
}

export const LineRow = memo(function LineRow({ line, number, times, began, wrap, needle, selected, current, onSelect }: RowProps) {
  const address = number === null ? placeName(line.id) : `L${number}`;
  const name = number === null ? address.slice(1) : number;
  return (
    <div
      className={cx(
        "group flex min-h-5 pr-3 leading-5",
        line.stream === "stderr" && "bg-bad-soft/40",
        line.cut && "bg-warn-soft",
        current && "bg-warn-soft",
        selected && "bg-accent-soft",
      )}
    >
      <a
        href={`#${address}`}
        aria-label={`Line ${name}`}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          onSelect(line.id, address);
        }}
        className="w-14 shrink-0 pr-3 text-right text-muted tabular-nums select-none hover:text-text"
      >
        {number ?? "·"}
      </a>
      {times !== "off" && (
        <time dateTime={line.time} title={exact(line.time)} className="w-20 shrink-0 pr-2 text-right text-muted tabular-nums select-none">
          {timeOf(line, times, began)}
        </time>
      )}
      <span className="w-8 shrink-0 text-muted select-none">
        {line.cut ? <Scissors aria-hidden className="mt-1 size-3 text-warn" /> : line.stream === "stderr" ? <span className="font-semibold text-bad">err</span> : line.stream === "system" ? "sys" : ""}
      </span>
      <span className={cx("min-w-0 flex-1", wrap ? "break-words whitespace-pre-wrap" : "whitespace-pre", line.cut ? "font-medium text-warn" : line.stream === "system" && "text-muted italic")}>
        <LineText text={line.text} needle={needle} />
      </span>
      {selected && (
        <span className="sticky right-0 -my-1 shrink-0">
          <CopyButton text={plain(line.text)} label={`Copy line ${name}`} />
        </span>
      )}
    </div>
  );
});

const ICONS = { running: LoaderCircle, done: CircleCheck, failed: CircleX };
const TONES = { running: "text-info", done: "text-ok", failed: "text-bad" };
const WORDS = { running: "running", done: "done", failed: "failed" };

/** `partial`: not all of the log is loaded, so nothing may mean that its lines are elsewhere. */
export function GroupRow({ group, open, count, partial, onToggle }: { group: LogGroup; open: boolean; count: number; partial: boolean; onToggle: () => void }) {
  const Icon = ICONS[group.state];
  return (
    <button
      type="button"
      aria-expanded={open}
      onClick={onToggle}
      className="sticky left-0 flex h-8 w-[100cqw] items-center gap-2 border-b border-line bg-sunken px-2 font-sans text-[13px] hover:bg-hover"
    >
      <ChevronRight aria-hidden className={cx("size-4 shrink-0 text-muted transition-transform", open && "rotate-90")} />
      <Icon aria-hidden className={cx("size-4 shrink-0", TONES[group.state], group.state === "running" && "animate-spin")} />
      <span className="truncate font-medium">{group.title}</span>
      <span className="sr-only">{WORDS[group.state]}</span>
      {group.exitCode !== undefined && group.exitCode !== 0 && <span className="shrink-0 text-xs text-bad">exit {group.exitCode}</span>}
      <span className="ml-auto shrink-0 text-xs text-muted tabular-nums">
        {!partial ? plural(count, "line") : count ? `${plural(count, "line")} loaded` : "not loaded"}
        {group.startedAt && (
          <>
            {" · "}
            <Elapsed from={group.startedAt} until={group.state === "running" ? null : (group.finishedAt ?? group.startedAt)} />
          </>
        )}
      </span>
    </button>
  );
}
