import { CircleAlert, FilePen, GitCommitHorizontal, GitPullRequest, Info, ListChecks, type LucideIcon, MessageSquare, Moon, Wrench } from "lucide-react";
import { type ReactNode, useMemo, useRef, useState } from "react";
import { ForgeLink } from "@/components/forge";
import { useFollow } from "@/components/log/follow";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { plural } from "@/ui/format";
import { lookOf } from "@/ui/status";
import { clock, duration, exact, useNow } from "@/ui/time";
import { ApprovalCard } from "./ApprovalCard";
import { type Entry, type PlanStep, type Shown, shown, toolLine } from "./feed";
import { Prose } from "./Prose";

// So many entries are in the document at once, and so many come with a click.
const WINDOW = 200;
const STEP = 100;

export function Feed({ entries, details, waiting }: { entries: Entry[]; details: boolean; waiting: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  /** So many of the newest are not shown: the user went back. */
  const [skip, setSkip] = useState(0);
  const all = useMemo(() => shown(entries, details), [entries, details]);
  const end = Math.max(Math.min(WINDOW, all.length), all.length - skip);
  const begin = Math.max(0, end - WINDOW);
  const { onScroll, onWheel } = useFollow(box, all.length, true);
  if (all.length === 0) return waiting;
  return (
    <div
      ref={box}
      onScroll={onScroll}
      onWheel={onWheel}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable
      tabIndex={0}
      role="region"
      aria-label="Activity"
      className="h-full overflow-y-auto px-4 py-3 focus-visible:-outline-offset-2"
    >
      {begin > 0 && (
        <Button small look="ghost" className="mx-auto mb-2 !flex" onClick={() => setSkip(skip + STEP)}>
          Load earlier ({begin})
        </Button>
      )}
      <ol className="flex flex-col gap-2.5">
        {all.slice(begin, end).map((entry) => (
          <li key={entry.id} data-entry={entry.kind}>
            <EntryView entry={entry} />
          </li>
        ))}
      </ol>
      {end < all.length && (
        <Button small look="ghost" className="mx-auto mt-2 !flex" onClick={() => setSkip(Math.max(0, skip - STEP))}>
          Load later ({all.length - end})
        </Button>
      )}
    </div>
  );
}

function Line({ icon: Icon, tone = "text-muted", time, spin, children }: { icon: LucideIcon; tone?: string; time: string; spin?: boolean; children: ReactNode }) {
  return (
    <div className="flex gap-2.5">
      <Icon aria-hidden className={cx("mt-0.5 size-4 shrink-0", tone, spin && "animate-spin")} />
      <div className="min-w-0 flex-1">{children}</div>
      <time dateTime={time} title={exact(time)} className="shrink-0 text-xs leading-5 text-muted tabular-nums">
        {clock(time).slice(0, 5)}
      </time>
    </div>
  );
}

const PHASE_TONES: Record<string, string> = { ok: "text-ok", bad: "text-bad", info: "text-info", warn: "text-warn" };

function EntryView({ entry }: { entry: Shown }) {
  switch (entry.kind) {
    case "phase": {
      const look = lookOf("step", entry.state);
      return (
        <Line icon={look.icon} spin={look.spin} tone={PHASE_TONES[look.tone]} time={entry.time}>
          <span className="font-medium">{entry.step}</span>{" "}
          <span className="text-muted">
            {look.label.toLowerCase()}
            {entry.until && ` in ${duration(Date.parse(entry.until) - Date.parse(entry.time))}`}
            {entry.attempt > 1 && `, attempt ${entry.attempt}`}
          </span>
          {entry.message && <p className="break-words whitespace-pre-wrap text-bad first-letter:uppercase">{entry.message}</p>}
        </Line>
      );
    }
    case "message":
      return (
        <Line icon={MessageSquare} tone="text-accent" time={entry.time}>
          <Prose text={entry.text} />
        </Line>
      );
    case "tool":
    case "file":
      return (
        <Line icon={entry.kind === "tool" ? Wrench : FilePen} time={entry.time}>
          <ToolCall entry={entry} />
        </Line>
      );
    case "tools":
      return (
        <Line icon={entry.items.some((each) => each.kind === "tool") ? Wrench : FilePen} time={entry.time}>
          {entry.items.length === 1 ? <ToolCall entry={entry.items[0]!} /> : <ToolCalls items={entry.items} />}
        </Line>
      );
    case "error":
      return (
        <Line icon={CircleAlert} tone="text-bad" time={entry.time}>
          <p className="break-words whitespace-pre-wrap text-bad">{entry.text}</p>
          {entry.tried && entry.tried.length > 0 && <p className="text-muted">Tried: {entry.tried.join("; ")}</p>}
          {entry.advice && <p>{entry.advice}</p>}
        </Line>
      );
    case "commit":
      return (
        <Line icon={GitCommitHorizontal} tone="text-violet" time={entry.time}>
          {entry.text}
        </Line>
      );
    case "pull":
      return (
        <Line icon={GitPullRequest} tone="text-violet" time={entry.time}>
          <ForgeLink url={entry.url} className="underline">
            {entry.text} #{entry.number}
          </ForgeLink>
        </Line>
      );
    case "approval":
      return <ApprovalCard id={entry.approval} title={entry.title} />;
    case "plan":
      return (
        <Line icon={ListChecks} tone="text-info" time={entry.time}>
          <Plan steps={entry.steps} />
        </Line>
      );
    case "rest":
      return (
        <Line icon={Moon} tone={entry.over ? undefined : "text-warn"} time={entry.time}>
          {entry.over ? <span className="text-muted">The agent rested: the day's budget was used up.</span> : <Rest until={entry.until} />}
        </Line>
      );
    case "note":
      return (
        <Line icon={Info} time={entry.time}>
          <span className="text-muted">{entry.text}</span>
        </Line>
      );
  }
}

// The words of a plan are those of steps.
const PLANNED: Record<string, string> = { pending: "pending", in_progress: "running", completed: "done" };

function Plan({ steps }: { steps: PlanStep[] }) {
  return (
    <ol aria-label="Plan of the agent" className="flex flex-col gap-0.5">
      {steps.map((step, index) => {
        const look = lookOf("step", PLANNED[step.status] ?? step.status);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a step is known by its place
          <li key={index} className="flex gap-1.5">
            <look.icon aria-hidden className={cx("mt-0.5 size-4 shrink-0", PHASE_TONES[look.tone] ?? "text-muted")} />
            <span className="min-w-0 break-words">
              {step.title} <span className="text-xs text-muted">{look.label.toLowerCase()}</span>
            </span>
          </li>
        );
      })}
    </ol>
  );
}

/** The day's budget is used up: how long until the agent goes on. */
function Rest({ until }: { until: string }) {
  const left = Date.parse(until) - useNow();
  return (
    <>
      <span className="font-medium">The agent is resting</span>{" "}
      <span className="text-muted">
        because the day's budget is used up.{" "}
        {left > 0 ? (
          <>
            It goes on in <span className="tabular-nums">{duration(left)}</span>.
          </>
        ) : (
          "It goes on soon."
        )}
      </span>
    </>
  );
}

type Call = Parameters<typeof toolLine>[0];

function ToolCall({ entry }: { entry: Call }) {
  if (entry.kind === "file") return <code className="block truncate font-mono text-xs leading-5">{toolLine(entry)}</code>;
  return (
    <details className="min-w-0">
      <summary className="truncate font-mono text-xs leading-5 marker:text-muted">{toolLine(entry)}</summary>
      <pre className="mt-1 max-h-64 overflow-auto rounded-md bg-sunken p-2 font-mono text-xs whitespace-pre-wrap">{JSON.stringify(entry.input, null, 2)}</pre>
    </details>
  );
}

/** Many calls in one line; open, each has its own. */
export function ToolCalls({ items }: { items: Call[] }) {
  const files = items.filter((each) => each.kind === "file").length;
  const tools = items.length - files;
  const text = [tools && plural(tools, "tool call"), files && plural(files, "changed file")].filter(Boolean).join(", ");
  return (
    <details className="min-w-0">
      <summary className="text-muted">
        {text}: <code className="font-mono text-xs">{toolLine(items.at(-1)!)}</code>
      </summary>
      <ol className="mt-1 flex flex-col gap-1 border-l border-line pl-3">
        {items.map((each) => (
          <li key={each.id}>
            <ToolCall entry={each} />
          </li>
        ))}
      </ol>
    </details>
  );
}
