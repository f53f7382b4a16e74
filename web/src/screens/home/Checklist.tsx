import type { UseQueryResult } from "@tanstack/react-query";
import { useQuery } from "@tanstack/react-query";
import { CircleAlert, CircleCheck, CircleDashed } from "lucide-react";
import type { ReactNode } from "react";
import { templatesQuery } from "@/api/e2b";
import { ErrorState, Skeleton, SkeletonRows } from "@/ui/states";
import type { DetailedHealth } from "../health/queries";

type State = "ok" | "todo" | "failed";

const LOOK: Record<State, { icon: typeof CircleCheck; className: string; word: string }> = {
  ok: { icon: CircleCheck, className: "text-ok", word: "ready" },
  todo: { icon: CircleDashed, className: "text-warn", word: "not set up" },
  failed: { icon: CircleAlert, className: "text-bad", word: "failed" },
};

function Item({ state, title, children }: { state: State; title: string; children: ReactNode }) {
  const look = LOOK[state];
  return (
    <li className="flex gap-3 px-4 py-2.5">
      <look.icon aria-hidden className={`mt-0.5 size-5 shrink-0 ${look.className}`} />
      <div className="min-w-0">
        <p className="font-medium">
          {title} <span className={`text-xs font-normal ${look.className}`}>{look.word}</span>
        </p>
        <div className="text-[13px] break-words text-muted">{children}</div>
      </div>
    </li>
  );
}

const Code = ({ children }: { children: ReactNode }) => (
  <code className="rounded bg-sunken px-1 py-0.5 font-mono text-xs text-text">{children}</code>
);

function Template() {
  const templates = useQuery(templatesQuery);
  const title = "A template to start from";
  if (templates.isPending)
    return (
      <li role="status" aria-label="Loading" className="px-4 py-2.5">
        <Skeleton className="h-9" />
      </li>
    );
  if (templates.isError && !templates.data)
    return (
      <Item state="failed" title={title}>
        {templates.error.message}{" "}
        <button type="button" className="dense cursor-pointer text-accent underline" onClick={() => void templates.refetch()}>
          Try again
        </button>
      </Item>
    );
  const ready = templates.data.filter((each) => each.buildStatus !== "error");
  return (
    <Item state={ready.length > 0 ? "ok" : "todo"} title={title}>
      {ready.length > 0 ? (
        ready.map((each) => each.aliases?.[0] ?? each.templateID).join(", ")
      ) : (
        <>
          <Code>./run</Code> prepares the template <Code>base</Code>.
        </>
      )}
    </Item>
  );
}

/** What has to be there before an agent can work, each with what to do when it is not. */
export function Checklist({ health }: { health: UseQueryResult<DetailedHealth> }) {
  if (health.isPending) return <SkeletonRows rows={5} />;
  if (health.isError) return <ErrorState error={health.error} onRetry={() => void health.refetch()} />;
  const checks = health.data.checks;
  const of = (name: string) => checks[name];
  const ok = (name: string) => of(name)?.status === "ok";
  const why = (name: string) => String(of(name)?.message ?? "");
  const engine = ok("engine") && ok("provider");
  const github = of("github");
  return (
    <ul className="divide-y divide-line">
      <Item state={engine ? "ok" : "failed"} title="Sandboxes work here">
        {engine ? (
          <>{Number(of("engine")?.running ?? 0)} running now, on {of("provider")?.name === "local" ? "this server itself" : String(of("provider")?.name)}.</>
        ) : (
          <>
            {why("engine") || why("provider")} <Code>caisson doctor</Code> tells what this machine lacks.
          </>
        )}
      </Item>
      <Template />
      <Item state={ok("database") ? "ok" : "failed"} title="The database answers">
        {ok("database") ? "Everything is stored there, so a restart loses nothing." : why("database")}
      </Item>
      <Item state={ok("runs") ? "ok" : "failed"} title="Durable runs finish">
        {ok("runs") ? "A run of one step was started, taken by a worker and finished." : why("runs")}
      </Item>
      <Item state={!ok("github") ? "failed" : github?.configured ? "ok" : "todo"} title="GitHub">
        {!ok("github") ? (
          why("github")
        ) : github?.configured ? (
          "The credential works: branches can be pushed and pull requests opened."
        ) : (
          <>
            Tasks become pull requests with a token: start the server with <Code>GITHUB_TOKEN=…</Code>. Tasks without a
            repository work without it.
          </>
        )}
      </Item>
    </ul>
  );
}
