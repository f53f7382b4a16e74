import { describe, expect, it } from "vitest";
import type { LiveEvent } from "@/live/stream";
import { AnswerFolder, costOf, type Message, partsOf } from "./conversation";

let id = 0;
const event = (type: string, fields: Record<string, unknown>): LiveEvent => {
  id += 1;
  return { id, type, timestamp: "", execution_id: "m", ...fields };
};
const message = (fields: Partial<Message>) => ({ id: "m", state: "running", content: "", parts: [], ...fields }) as Message;

describe("an answer", () => {
  const folder = new AnswerFolder();
  for (const each of [
    event("message_delta", { message_id: "m", part: 0, text: "I " }),
    event("message_delta", { message_id: "m", part: 0, text: "look" }),
    event("agent_tool", { tool: "bash", input: { command: "ls" } }),
    event("message_delta", { message_id: "m", part: 1, text: "I see" }),
  ])
    folder.add(each);
  const live = folder.state().get("m");

  it("grows by its pieces, around the tools", () => {
    expect(partsOf(message({}), live)).toEqual([
      { type: "text", text: "I look", part: 0 },
      { type: "tool", name: "bash", input: { command: "ls" } },
      { type: "text", text: "I see", part: 1 },
    ]);
  });

  it("takes back what is said again in other words", () => {
    const again = new AnswerFolder();
    for (const each of [
      event("message_delta", { message_id: "m", part: 0, text: "One" }),
      event("message_delta", { message_id: "m", part: 1, text: "I guess" }),
      event("message_delta", { message_id: "m", part: 1, restart: true, text: "I " }),
      event("message_delta", { message_id: "m", part: 1, text: "know" }),
    ])
      again.add(each);
    expect(again.state().get("m")).toEqual([
      { type: "text", text: "One", part: 0 },
      { type: "text", text: "I know", part: 1 },
    ]);
  });

  it("is what the server kept, once it is done", () => {
    const parts = [{ type: "text", text: "I saw" }] as never;
    expect(partsOf(message({ state: "done", parts }), live)).toEqual([{ type: "text", text: "I saw" }]);
    expect(partsOf(message({ state: "done", content: "plain" }), undefined)).toEqual([{ type: "text", text: "plain" }]);
  });
});

it("what the answers cost is summed, whatever is missing", () => {
  expect(costOf([message({ dollars: 0.25, tokens_in: 100, tokens_out: 20 }), message({ dollars: undefined }), message({ dollars: 0.5, tokens_in: 1 })])).toEqual({ dollars: 0.75, tokens: 121 });
});
