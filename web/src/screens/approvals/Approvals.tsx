import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Inbox, ShieldCheck } from "lucide-react";
import { useState } from "react";
import { api, data, type Schemas } from "@/api/client";
import { approvalsQuery, boardQuery, keys } from "@/api/queries";
import { focusedRowId, rowShortcuts } from "@/shell/rows";
import { useShortcuts } from "@/shell/shortcuts";
import { Page } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Tabs } from "@/ui/tabs";
import { done, failed } from "@/ui/toast";
import { useUrl } from "@/ui/url";
import { type Approval, ApprovalCard } from "./ApprovalCard";
import { DenyDialog } from "./DenyDialog";

/** What waits for a person, and what was decided. */
export default function Approvals() {
  const [url, change] = useUrl();
  const query = useQuery(approvalsQuery);
  const tasks = useQuery(boardQuery).data?.columns.flatMap((column) => column.tasks);
  const queries = useQueryClient();
  const [denied, setDenied] = useState<Approval | null>(null);
  const [busy, setBusy] = useState("");
  const tab = url.tab === "decided" ? "decided" : "waiting";
  const waiting = query.data?.filter((each) => each.state === "pending") ?? [];
  const decided = query.data?.filter((each) => each.state !== "pending") ?? [];

  const decide = async (approval: Approval, yes: boolean, comment = "") => {
    const index = waiting.findIndex((each) => each.id === approval.id);
    const next = waiting[index + 1] ?? waiting[index - 1];
    setBusy(approval.id);
    setDenied(null);
    try {
      const body = { comment } as Schemas["Decision"];
      const params = { path: { id: approval.id } };
      await data(yes ? api.POST("/api/v1/approvals/{id}/approve", { params, body }) : api.POST("/api/v1/approvals/{id}/reject", { params, body }));
      await Promise.all([keys.approvals, keys.board].map((queryKey) => queries.invalidateQueries({ queryKey })));
      done(yes ? `Approved: ${approval.title}` : `Denied: ${approval.title}`);
      // The next question, so that the inbox can be worked through by a and d alone.
      requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-row="${CSS.escape(next?.id ?? "")}"]`)?.focus());
    } catch (error) {
      failed("Nothing was decided", error);
    } finally {
      setBusy("");
    }
  };
  const chosen = () => waiting.find((each) => each.id === focusedRowId()) ?? (waiting.length === 1 ? waiting[0] : undefined);
  const onChosen = (act: (approval: Approval) => void) => () => {
    const approval = tab === "waiting" && !busy ? chosen() : undefined;
    if (approval) act(approval);
  };
  const scope = "Approvals";
  useShortcuts([
    ...rowShortcuts(scope, "question"),
    { keys: "a", label: "Approve", scope, run: onChosen((approval) => void decide(approval, true)) },
    { keys: "d", label: "Deny", scope, run: onChosen(setDenied) },
  ]);

  const list = (approvals: Approval[]) => (
    <ul className="flex flex-col gap-3 p-4">
      {approvals.map((approval) => {
        const task = tasks?.find((each) => each.id === approval.task_id);
        return (
          <ApprovalCard
            key={approval.id}
            approval={approval}
            taskTitle={task && `#${task.number} ${task.title}`}
            busy={busy === approval.id}
            onApprove={() => void decide(approval, true)}
            onDeny={() => setDenied(approval)}
          />
        );
      })}
    </ul>
  );
  const content = (approvals: Approval[], empty: { title: string; text: string }) =>
    query.error && !query.data ? (
      <ErrorState error={query.error} onRetry={() => void query.refetch()} />
    ) : !query.data ? (
      <SkeletonRows rows={3} height="h-28" />
    ) : approvals.length > 0 ? (
      list(approvals)
    ) : (
      <EmptyState icon={tab === "waiting" ? ShieldCheck : Inbox} title={empty.title}>
        {empty.text}
      </EmptyState>
    );
  return (
    <Page title="Approvals">
      <div className="-mx-4">
        <Tabs
          label="Approvals"
          value={tab}
          onChange={(id) => change({ tab: id === "waiting" ? undefined : id })}
          tabs={[
            {
              id: "waiting",
              label: "Waiting",
              count: waiting.length || undefined,
              content: content(waiting, {
                title: "Nothing waits for you",
                text: "Tasks with the option “Ask me before it is pushed” wait here until you approve.",
              }),
            },
            {
              id: "decided",
              label: "Decided",
              content: content(decided, { title: "Nothing was decided yet", text: "What you approve or deny stays here." }),
            },
          ]}
        />
      </div>
      {denied && <DenyDialog title={denied.title} onClose={() => setDenied(null)} onDeny={(why) => void decide(denied, false, why)} />}
    </Page>
  );
}
