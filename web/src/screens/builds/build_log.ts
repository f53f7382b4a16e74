// The log of a build from its first line on, and what comes as it comes. It is a stream of its own: lines
// of builds are no events.
import { createParser } from "eventsource-parser";
import { useEffect, useState } from "react";
import { ApiError, errorOf, request, type Schemas } from "@/api/client";
import type { LogGroup, LogLine } from "@/components/LogViewer";
import { backoff } from "@/live/stream";
import type { Build } from "./queries";

type Line = Schemas["BuildLogLine"];

export interface BuildLog {
  lines: Line[];
  loading: boolean;
  error: Error | null;
}

const BATCH_MS = 100;

export function useBuildLog(id: string): BuildLog & { retry: () => void } {
  const [log, setLog] = useState<BuildLog>({ lines: [], loading: true, error: null });
  const [attempt, setAttempt] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `attempt` begins anew
  useEffect(() => {
    setLog({ lines: [], loading: true, error: null });
    const abort = new AbortController();
    void follow(id, abort.signal, setLog);
    return () => abort.abort();
  }, [id, attempt]);
  return { ...log, retry: () => setAttempt(attempt + 1) };
}

/** Reads until the server says that nothing more comes; a connection that breaks goes on where it was. */
async function follow(id: string, signal: AbortSignal, show: (log: BuildLog) => void) {
  let lines: Line[] = [];
  let last = -1;
  let over = false;
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const publish = (error: Error | null = null) => {
    clearTimeout(timer);
    timer = undefined;
    lines = lines.slice();
    if (!signal.aborted) show({ lines, loading: false, error });
  };
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (event === "done") over = true;
      if (event !== "log") return;
      const line = JSON.parse(data) as Line;
      if (line.id <= last) return;
      last = line.id;
      lines.push(line);
      timer ??= setTimeout(publish, BATCH_MS);
    },
  });
  while (!over && !signal.aborted) {
    let wait = 0;
    try {
      const response = await request(`/api/v1/builds/${id}/logs/stream`, { signal, headers: last < 0 ? {} : { "Last-Event-ID": String(last) } });
      if (!response.ok || !response.body) throw await errorOf(response);
      failures = 0;
      // Also if nothing comes: it is connected now.
      timer ??= setTimeout(publish, BATCH_MS);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || over) break;
        parser.feed(value);
      }
      parser.reset();
      publish();
    } catch (error) {
      if (signal.aborted) return;
      // A connection that breaks is no news: what is shown stays. A refusal is told, and mostly it passes.
      if (error instanceof ApiError && error.status > 0) {
        publish(error);
        if (!isPassing(error)) return;
        wait = error.retryAfter * 1000;
      }
    }
    failures += 1;
    if (!over) await pause(Math.max(wait, backoff(failures)), signal);
  }
}

/** The server is busy or does not work: it may soon. */
const isPassing = (error: ApiError) => error.status === 429 || error.status >= 500;

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

/** How the server's line begins that says how much is missing. */
const CUT = "Output cut: ";

const PHASES: Record<string, string> = {
  starting: "Start",
  scaffold: "Set up",
  code: "Write code",
  deps: "Install",
  checks: "Check",
  ready: "Serve",
};

/** Lines and groups as the log viewer wants them: a group for each phase. */
export function logOf(build: Build, lines: Line[]): { lines: LogLine[]; groups: LogGroup[] } {
  const groups = new Map<string, LogGroup>();
  const shown = lines.map((line): LogLine => {
    const group = groups.get(line.phase);
    if (!group) groups.set(line.phase, { id: line.phase, title: PHASES[line.phase] ?? line.phase, state: "done", startedAt: line.ts, finishedAt: line.ts });
    else group.finishedAt = line.ts;
    return { id: line.id, time: line.ts, stream: line.source, text: line.raw || line.text, group: line.phase, cut: line.source === "system" && line.text.startsWith(CUT) };
  });
  const last = [...groups.values()].at(-1);
  if (last && build.state === "failed") last.state = "failed";
  if (last && build.state !== "failed" && build.state !== "ready") Object.assign(last, { state: "running", finishedAt: null });
  return { lines: shown, groups: [...groups.values()] };
}
