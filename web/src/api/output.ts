// What commands printed, as the server finds it.
import { json, type Schemas } from "./client";

/** Whose output: the collection in the API, and the id in it. */
export interface OutputOwner {
  kind: "tasks" | "sessions" | "sandboxes";
  id: string;
}

export type OutputHit = Schemas["OutputHits"]["hits"][number];

// More of them are of no use to a reader.
const MAX_HITS = 10_000;

export const outputAddress = ({ kind, id }: OutputOwner) => `/api/v1/${kind}/${encodeURIComponent(id)}/output`;

/** Tells all hits so far, again and again as they come. True if there are more. */
export async function searchOutput(owner: OutputOwner, text: string, stream: "stdout" | "stderr" | undefined, tell: (hits: OutputHit[]) => void, signal: AbortSignal): Promise<boolean> {
  const hits: OutputHit[] = [];
  for (let after = 0; ; ) {
    const query = new URLSearchParams({ q: text, after: String(after), ...(stream && { stream }) });
    const page = await json<Schemas["OutputHits"]>(`${outputAddress(owner)}/search?${query}`, { signal });
    hits.push(...page.hits);
    tell(hits);
    if (page.next === undefined || hits.length >= MAX_HITS) return page.next !== undefined;
    after = page.next;
  }
}
