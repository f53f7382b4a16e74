// Comments at lines that are not sent yet. They live as long as the page, also while their pane is closed.
import { create } from "zustand";

export interface Place {
  path: string;
  /** LEFT: what was there. RIGHT: what is there now. */
  side: "LEFT" | "RIGHT";
  line: number;
}

export interface Draft extends Place {
  id: number;
  /** The line it is about. */
  quote: string;
  text: string;
}

/** What a reviewer wrote at GitHub. */
export interface Remark {
  id: number;
  path: string;
  line: number;
  author: string;
  body: string;
  createdAt: string;
  url: string;
}

const useDrafts = create<{ drafts: Record<string, Draft[]> }>(() => ({ drafts: {} }));
const NONE: Draft[] = [];
let lastId = 0;

export const useReview = (review: string) => useDrafts((state) => state.drafts[review] ?? NONE);

const change = (review: string, how: (drafts: Draft[]) => Draft[]) =>
  useDrafts.setState(({ drafts }) => ({ drafts: { ...drafts, [review]: how(drafts[review] ?? NONE) } }));

export const addDraft = (review: string, draft: Omit<Draft, "id">) => {
  lastId += 1;
  const id = lastId;
  change(review, (drafts) => [...drafts, { ...draft, id }]);
};

export const editDraft = (review: string, id: number, text: string) =>
  change(review, (drafts) => drafts.map((each) => (each.id === id ? { ...each, text } : each)));

export const removeDraft = (review: string, id: number) =>
  change(review, (drafts) => drafts.filter((each) => each.id !== id));

export const clearDrafts = (review: string) => change(review, () => NONE);

/** What the agent is told: each comment below the place and the line it is about. */
export function feedbackOf(summary: string, drafts: Draft[]): string {
  const sorted = [...drafts].sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
  const parts = sorted.map(
    (draft) => `${draft.path}:${draft.line}${draft.side === "LEFT" ? " (before the change)" : ""}\n> ${draft.quote}\n${draft.text}`,
  );
  return [summary.trim(), ...parts].filter(Boolean).join("\n\n");
}
