import { useInfiniteQuery } from "@tanstack/react-query";
import { Bot, CircleAlert, GitCommitHorizontal, Info, LoaderCircle, MessagesSquare, User } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { useFollow } from "@/components/log/follow";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Ago } from "@/ui/time";
import { type AnswerPart, type Message, partsOf } from "./conversation";
import { ToolCalls } from "./Feed";
import { Prose } from "./Prose";
import { messagesQuery } from "./queries";

export function Conversation({ id, live, errorActions }: {
  id: string;
  live: ReadonlyMap<string, AnswerPart[]>;
  /** What can be done about an answer that failed. */
  errorActions: (failed: Message, question: Message | undefined) => ReactNode;
}) {
  const box = useRef<HTMLDivElement>(null);
  const pages = useInfiniteQuery(messagesQuery(id));
  const messages = pages.data?.pages.toReversed().flatMap((page) => page.messages) ?? [];
  const last = messages.at(-1);
  const size = messages.length + (last ? partsOf(last, live.get(last.id)).reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 1), 0) : 0);
  const { onScroll, onWheel } = useFollow(box, size, true);
  if (pages.error) return <ErrorState error={pages.error} onRetry={() => void pages.refetch()} />;
  if (pages.isPending) return <SkeletonRows />;
  if (messages.length === 0)
    return (
      <EmptyState icon={MessagesSquare} title="Nothing was said yet">
        Write below what the agent should do or answer.
      </EmptyState>
    );
  return (
    <div
      ref={box}
      onScroll={onScroll}
      onWheel={onWheel}
      role="region"
      aria-label="Conversation"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable
      tabIndex={0}
      className="h-full overflow-y-auto px-4 py-3 focus-visible:-outline-offset-2"
    >
      {pages.hasNextPage && (
        <Button small look="ghost" busy={pages.isFetchingNextPage} className="mx-auto mb-2 !flex" onClick={() => void pages.fetchNextPage()}>
          Load earlier
        </Button>
      )}
      <ol className="flex flex-col gap-4">
        {messages.map((message) => (
          <li key={message.id}>
            {message.role === "assistant" ? (
              <Answer message={message} live={live.get(message.id)} actions={errorActions(message, messages.find((each) => each.id === message.reply_to))} />
            ) : (
              <Said message={message} waits={messages.some((each) => each.reply_to === message.id && each.state === "queued")} />
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}

function Said({ message, waits }: { message: Message; waits: boolean }) {
  if (message.role === "system")
    return (
      <p className="flex gap-2 text-[13px] text-muted">
        <Info aria-hidden className="mt-0.5 size-4 shrink-0" /> {message.content}
      </p>
    );
  return (
    <div className="flex gap-2.5">
      <User aria-hidden className="mt-2 size-4 shrink-0 text-muted" />
      <div className="min-w-0 flex-1 rounded-lg bg-sunken px-3 py-2">
        <p className="break-words whitespace-pre-wrap">{message.content}</p>
        <p className="mt-1 flex items-center gap-2 text-xs text-muted">
          <span>
            You · <Ago time={message.created_at} />
          </span>
          {message.mode === "plan" && <Badge>Plan only</Badge>}
          {waits && <Badge tone="warn">Queued</Badge>}
        </p>
      </div>
    </div>
  );
}

function Answer({ message, live, actions }: { message: Message; live: AnswerPart[] | undefined; actions: ReactNode }) {
  if (message.state === "queued") return null;
  const running = message.state === "running";
  return (
    <div className="flex gap-2.5" aria-busy={running}>
      <Bot aria-hidden className="mt-0.5 size-4 shrink-0 text-accent" />
      <div className="flex min-w-0 flex-1 flex-col gap-2">
        {grouped(partsOf(message, live)).map((part, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts only come behind the others
          <PartView key={index} part={part} />
        ))}
        {running && (
          <p className="flex items-center gap-1.5 text-[13px] text-muted">
            <LoaderCircle aria-hidden className="size-3.5 animate-spin" /> Working
          </p>
        )}
        {message.state === "stopped" && <p className="text-[13px] text-muted">Stopped.</p>}
        {message.state === "failed" && (
          <div role="alert" className="rounded-lg bg-bad-soft px-3 py-2 text-bad">
            <p className="flex gap-2">
              <CircleAlert aria-hidden className="mt-0.5 size-4 shrink-0" />
              <span className="min-w-0 break-words whitespace-pre-wrap">{message.error || "The answer failed."}</span>
            </p>
            <div className="mt-2 flex flex-wrap gap-2">{actions}</div>
          </div>
        )}
        {message.commit_sha && (
          <p className="flex items-center gap-1.5 text-[13px] text-muted">
            <GitCommitHorizontal aria-hidden className="size-4 text-violet" /> Committed as <code className="font-mono">{message.commit_sha.slice(0, 8)}</code>
          </p>
        )}
      </div>
    </div>
  );
}

type ToolRun = { type: "tools"; items: Parameters<typeof ToolCalls>[0]["items"] };

/** Tools in a row as one part. */
function grouped(parts: AnswerPart[]): (AnswerPart | ToolRun)[] {
  const out: (AnswerPart | ToolRun)[] = [];
  parts.forEach((part, id) => {
    if (part.type !== "tool" && part.type !== "file") return void out.push(part);
    const item =
      part.type === "tool"
        ? { id, time: "", kind: "tool" as const, tool: part.name, input: part.input }
        : { id, time: "", kind: "file" as const, path: part.path, change: part.change ?? "" };
    const last = out.at(-1);
    if (last?.type === "tools") last.items.push(item);
    else out.push({ type: "tools", items: [item] });
  });
  return out;
}

function PartView({ part }: { part: AnswerPart | ToolRun }) {
  switch (part.type) {
    case "text":
      return <Prose text={part.text} />;
    case "tools":
      return <ToolCalls items={part.items} />;
    case "cut":
      return <p className="text-[13px] text-muted">The rest was too long to keep; the log has it.</p>;
    default:
      return null;
  }
}
