// What an answer is made of while it is being written: the same parts that the server keeps at its end.
import type { Schemas } from "@/api/client";
import type { LiveEvent } from "@/live/stream";
import { type Folder, textOf } from "./fold";

export type Message = Schemas["Message"];

export type AnswerPart =
  | { type: "text"; text: string; part?: number }
  | { type: "tool"; name: string; input?: unknown }
  | { type: "file"; path: string; change?: string }
  | { type: "cut" };

/** Parts of every answer that the log tells of, by the answer's id. */
export class AnswerFolder implements Folder<ReadonlyMap<string, AnswerPart[]>> {
  private readonly answers = new Map<string, AnswerPart[]>();

  state() {
    return new Map(this.answers);
  }

  add(event: LiveEvent) {
    if (event.type === "message_delta")
      return this.delta(textOf(event.message_id), textOf(event.text), Number(event.part ?? 0), event.restart === true);
    if (event.type === "agent_tool") this.push(event.execution_id, { type: "tool", name: textOf(event.tool), input: event.input });
    if (event.type === "file_changed") this.push(event.execution_id, { type: "file", path: textOf(event.path), change: textOf(event.change) });
  }

  private push(id: string | undefined, part: AnswerPart) {
    if (id) this.answers.set(id, [...(this.answers.get(id) ?? []), part]);
  }

  /** A piece of the text with this number. One that begins anew takes back what was said from there on. */
  private delta(id: string, text: string, part: number, restart: boolean) {
    const all = this.answers.get(id) ?? [];
    const parts = restart ? all.filter((each) => each.type !== "text" || (each.part ?? 0) < part) : all;
    const last = parts.at(-1);
    if (last?.type === "text" && last.part === part) this.answers.set(id, [...parts.slice(0, -1), { ...last, text: last.text + text }]);
    else this.answers.set(id, [...parts, { type: "text", text, part }]);
  }
}

/** What to show of an answer: what was kept, else what came so far, else its plain text. */
export function partsOf(message: Message, live: AnswerPart[] | undefined): AnswerPart[] {
  const kept = (message.parts ?? []) as unknown as AnswerPart[];
  if (kept.some((part) => part.type === "text")) return kept;
  const running = message.state === "running" || message.state === "queued";
  if (running) return live ?? [];
  const text = message.content || textFrom(live);
  return text ? [...kept, { type: "text", text }] : kept;
}

/** What the answers cost. */
export const costOf = (messages: Pick<Message, "dollars" | "tokens_in" | "tokens_out">[]) => ({
  dollars: messages.reduce((sum, each) => sum + (each.dollars ?? 0), 0),
  tokens: messages.reduce((sum, each) => sum + (each.tokens_in ?? 0) + (each.tokens_out ?? 0), 0),
});

const textFrom = (parts: AnswerPart[] | undefined) =>
  (parts ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
