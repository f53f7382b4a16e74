import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { RotateCw, SquareTerminal } from "lucide-react";
import { useState } from "react";
import { api, data } from "@/api/client";
import { agentsQuery, keys } from "@/api/queries";
import { type EventLog, useEventLog } from "@/live/event_log";
import { Button } from "@/ui/button";
import { Checkbox } from "@/ui/field";
import { plural } from "@/ui/format";
import { lazily } from "@/ui/lazily";
import { ErrorState, SkeletonRows } from "@/ui/states";
import type { Tab } from "@/ui/tabs";
import { failed } from "@/ui/toast";
import { Banner } from "./Banner";
import { Conversation } from "./Conversation";
import { AnswerFolder, costOf } from "./conversation";
import { EventsTab } from "./EventsTab";
import { useFold } from "./fold";
import { History } from "./History";
import { Layout } from "./Layout";
import { useOutputLog } from "./output_log";
import { MessageBox } from "./MessageBox";
import { NoSandbox } from "./NoSandbox";
import { messagesQuery, sessionQuery } from "./queries";
import { useSandboxRuns } from "./SandboxChip";
import { useUrl } from "@/ui/url";
import { SessionChanges } from "./SessionChanges";
import { SessionHeader } from "./SessionHeader";
import { Files, Part, Preview } from "./tabs";
import { useWorkTitle } from "./title";

const OutputLog = lazily(() => import("./OutputLog"));

/** A conversation with an agent, and the sandbox it works in. */
export function SessionView({ id }: { id: string }) {
  const queries = useQueryClient();
  const session = useQuery(sessionQuery(id));
  const agents = useQuery(agentsQuery).data;
  const pages = useInfiniteQuery(messagesQuery(id));
  const messages = pages.data?.pages.flatMap((page) => page.messages) ?? [];
  const log = useEventLog({ session_id: id });
  const live = useFold(log.events, () => new AnswerFolder());
  const [plan, setPlan] = useState(false);
  const [search, change] = useUrl();
  const runs = useSandboxRuns(session.data?.sandbox_id);
  const send = useMutation({
    mutationFn: (text: string) =>
      data(api.POST("/api/v1/sessions/{id}/messages", { params: { path: { id } }, body: { text, mode: plan ? "plan" : "build" } })),
    onError: (error) => failed("The message was not sent", error),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.session(id) }),
  });
  useWorkTitle(session.data?.title ?? "Agent work", session.data?.generating ? "Running" : session.data?.status === "error" ? "Failed" : "");

  if (session.error) return <ErrorState screen error={session.error} onRetry={() => void session.refetch()} title="This session could not be loaded" />;
  if (!session.data) return <SkeletonRows />;
  const agent = agents?.find((each) => each.id === session.data.agent_id);
  const sandbox = session.data.sandbox_id ?? null;
  const gone = <NoSandbox id={sandbox} kept="The next message makes a new one with what was pushed." />;
  const queued = session.data.queued ?? 0;
  const terminal = () => change({ drawer: search.drawer ? undefined : "open" });
  const tabs: Tab[] = [
    { id: "logs", label: "Logs", content: <Part><SessionLogs id={id} title={session.data.title} log={log} /></Part> },
    { id: "changes", label: "Changes", content: <Part>{sandbox && runs ? <SessionChanges sandboxId={sandbox} /> : gone}</Part> },
    { id: "preview", label: "Preview", content: <Part>{sandbox ? <Preview source={{ kind: "sandbox", id: sandbox }} /> : gone}</Part> },
    { id: "files", label: "Files", content: <Part>{sandbox && runs ? <Files sandboxId={sandbox} /> : gone}</Part> },
    { id: "history", label: "History", content: <History kept={[]} sandboxId={sandbox} running={runs} repoUrl={session.data.repo_url ?? ""} /> },
    { id: "events", label: "Events", content: <EventsTab log={log} /> },
  ];
  const cost = { ...costOf(messages), whole: !pages.hasNextPage };
  return (
    <Layout
      tabs={tabs}
      sandboxId={runs ? sandbox : null}
      noTerminal={gone}
      head={
        <>
          <SessionHeader session={session.data} agent={agent} cost={cost} onTerminal={terminal} />
          {session.data.status === "error" && <Banner look="bad">{session.data.error || "The sandbox could not be created."} The next message tries again.</Banner>}
        </>
      }
      centre={
        <div className="flex h-full min-h-0 flex-col">
          <div className="min-h-0 flex-1">
            <Conversation
              id={id}
              live={live}
              errorActions={(_, question) => (
                <>
                  {question && (
                    <Button small icon={<RotateCw aria-hidden className="size-4" />} onClick={() => send.mutate(question.content)}>
                      Retry
                    </Button>
                  )}
                  <Button small icon={<SquareTerminal aria-hidden className="size-4" />} onClick={terminal}>
                    Open terminal
                  </Button>
                </>
              )}
            />
          </div>
          <MessageBox
            label={`Message to ${agent?.name ?? "the agent"}`}
            placeholder={session.data.generating ? "Say what comes next; it waits for its turn." : "What should the agent do?"}
            action={session.data.generating ? "Queue" : "Send"}
            busy={send.isPending}
            onSend={(text) => send.mutateAsync(text)}
          >
            <Checkbox label="Plan only" checked={plan} onChange={(event) => setPlan(event.target.checked)} className="min-h-6 px-1 text-[13px] text-muted" />
            {queued > 0 && <span className="text-[13px] text-muted">{plural(queued, "message waits", "messages wait")}</span>}
          </MessageBox>
        </div>
      }
    />
  );
}

function SessionLogs({ id, title, log }: { id: string; title: string; log: EventLog }) {
  return <OutputLog owner={{ kind: "sessions", id }} label={`Log of ${title}`} log={log} {...useOutputLog(log)} empty="Nothing was printed yet." />;
}
