import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Archive, Bot, CircleStop, Ellipsis, GitBranch, GitPullRequest, Pause, Play, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, data, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { Button, IconButton } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { Select } from "@/ui/field";
import { dollars, repoName } from "@/ui/format";
import { Menu } from "@/ui/menu";
import { PrChip } from "@/components/PrChip";
import { StatusBadge } from "@/ui/status";
import { duration } from "@/ui/time";
import { done, failed } from "@/ui/toast";
import { readyPull } from "../board/actions";
import { HeadLine } from "./HeadLine";
import { modelsQuery } from "./queries";
import { SandboxChip } from "./SandboxChip";

type Session = Schemas["SessionView"];

export function SessionHeader({ session, agent, cost, onTerminal }: {
  session: Session;
  agent: Schemas["Agent"] | undefined;
  /** `whole`: of all messages, not only of those that are loaded. */
  cost: { dollars: number; tokens: number; whole: boolean };
  onTerminal: () => void;
}) {
  return (
    <header className="shrink-0 border-b border-line px-4 py-2.5">
      <HeadLine title={session.title || "Untitled"} actions={<Actions session={session} />} onTerminal={onTerminal}>
        <PrChip url={session.pull_request_url ?? ""} number={session.pull_request_number ?? 0} state={session.pull_request_state ?? ""} />
        <StatusBadge kind="session" state={session.status} />
      </HeadLine>
      <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-[13px] text-muted">
        {agent && (
          <span className="inline-flex items-center gap-1">
            <Bot aria-hidden className="size-3.5" /> {agent.name}
          </span>
        )}
        <ModelChoice session={session} />
        {session.running_ms ? <span title="How long its sandbox ran">{duration(session.running_ms)}</span> : null}
        {(cost.tokens > 0 || cost.dollars > 0) && (
          <span className="tabular-nums">
            {dollars(cost.dollars)} · {cost.tokens.toLocaleString()} tokens
            {!cost.whole && " of the messages shown"}
          </span>
        )}
        {session.repo_url && <span className="truncate">{repoName(session.repo_url)}</span>}
        {session.branch && (
          <span className="inline-flex min-w-0 items-center gap-1">
            <GitBranch aria-hidden className="size-3.5 shrink-0" />
            <code className="truncate font-mono text-xs">{session.branch}</code>
          </span>
        )}
        <SandboxChip id={session.sandbox_id} />
      </div>
    </header>
  );
}

/** The model is the agent's, or one of those that this server is set to; not while an answer is written. */
function ModelChoice({ session }: { session: Session }) {
  const queries = useQueryClient();
  const models = useQuery(modelsQuery).data ?? [];
  const choose = useMutation({
    mutationFn: (model: string) => data(api.PUT("/api/v1/sessions/{id}/model", { params: { path: { id: session.id } }, body: { model } as never })),
    onError: (error) => failed("The model was not changed", error),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.session(session.id) }),
  });
  const chosen = choose.isPending ? choose.variables : (session.model ?? "");
  const names = [...new Set([...models.map((model) => model.id), ...(chosen ? [chosen] : [])])];
  if (names.length === 0) return null;
  return (
    <Select aria-label="Model" value={chosen} disabled={session.generating} onChange={(event) => choose.mutate(event.target.value)} className="[&>select]:h-7 [&>select]:text-[13px]">
      <option value="">Agent's model</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </Select>
  );
}

function Actions({ session }: { session: Session }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [asking, setAsking] = useState(false);
  const params = { params: { path: { id: session.id } } };
  const refresh = () =>
    Promise.all([queries.invalidateQueries({ queryKey: keys.session(session.id) }), queries.invalidateQueries({ queryKey: keys.sessions })]);
  const act = useMutation({
    mutationFn: async (what: "pause" | "provision" | "stop" | "archive" | "ready") => {
      if (what === "ready") return void (await readyPull({ repo_url: session.repo_url ?? "", pull_request_number: session.pull_request_number ?? 0 }));
      if (what === "stop") return void (await data(api.POST("/api/v1/sessions/{id}/stop", { ...params, body: {} as never })));
      if (what === "archive") return void (await data(api.PATCH("/api/v1/sessions/{id}", { ...params, body: { archived: true } as never })));
      await data(api.POST(`/api/v1/sessions/{id}/sandbox/${what}`, params as never));
    },
    onError: (error) => failed("That did not work", error),
    onSettled: refresh,
  });
  const remove = useMutation({
    mutationFn: () => data(api.DELETE("/api/v1/sessions/{id}", params)),
    onError: (error) => failed("The session was not deleted", error),
    onSuccess: () => {
      done(`${session.title} was deleted`);
      void queries.invalidateQueries({ queryKey: keys.sessions });
      void navigate({ to: "/work" });
    },
  });
  return (
    <>
      {session.generating ? (
        <Button small busy={act.isPending} icon={<CircleStop aria-hidden className="size-4" />} onClick={() => act.mutate("stop")}>
          Stop
        </Button>
      ) : session.status === "active" ? (
        <Button small busy={act.isPending} icon={<Pause aria-hidden className="size-4" />} onClick={() => act.mutate("pause")}>
          Pause
        </Button>
      ) : session.status !== "provisioning" ? (
        <Button small busy={act.isPending} icon={<Play aria-hidden className="size-4" />} onClick={() => act.mutate("provision")}>
          Resume
        </Button>
      ) : null}
      <Menu
        label="Session"
        trigger={
          <IconButton small label="More">
            <Ellipsis aria-hidden className="size-4" />
          </IconButton>
        }
        items={[
          ...(session.pull_request_state === "draft"
            ? [{ label: "Ready for review", icon: <GitPullRequest aria-hidden className="size-4" />, onSelect: () => act.mutate("ready") }]
            : []),
          { label: "Archive", icon: <Archive aria-hidden className="size-4" />, disabled: session.status === "archived", onSelect: () => act.mutate("archive") },
          null,
          { label: "Delete", icon: <Trash2 aria-hidden className="size-4" />, danger: true, onSelect: () => setAsking(true) },
        ]}
      />
      <ConfirmDialog
        open={asking}
        onClose={() => setAsking(false)}
        onConfirm={() => remove.mutate()}
        busy={remove.isPending}
        title={`Delete ${session.title}?`}
        lost="Its messages and its sandbox are gone. What was pushed stays."
        action="Delete"
      />
    </>
  );
}
