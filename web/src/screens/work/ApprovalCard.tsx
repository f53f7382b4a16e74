import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { api, data } from "@/api/client";
import { approvalsQuery, keys } from "@/api/queries";
import { useShortcuts } from "@/shell/shortcuts";
import { Button } from "@/ui/button";
import { KeyHint } from "@/ui/kbd";
import { StatusBadge } from "@/ui/status";
import { failed } from "@/ui/toast";
import { DenyDialog } from "../approvals/DenyDialog";

const CARD = "[data-question]";

/** A question to the user, in the place where it came up. `a` and `d` answer the one that has the focus, else the newest. */
export function ApprovalCard({ id, title }: { id: string; title: string }) {
  const queries = useQueryClient();
  const approval = useQuery(approvalsQuery).data?.find((each) => each.id === id);
  const [asking, setAsking] = useState(false);
  const card = useRef<HTMLDivElement>(null);
  const decide = useMutation({
    mutationFn: ({ answer, comment = "" }: { answer: "approve" | "reject"; comment?: string }) =>
      data(api.POST(`/api/v1/approvals/{id}/${answer}`, { params: { path: { id } }, body: { comment } })),
    onError: (error) => failed("The answer was not taken", error),
    onSuccess: () => setAsking(false),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.approvals }),
  });
  const pending = approval?.state === "pending";
  const press = (answer: string) => () => {
    const chosen = document.activeElement?.closest(CARD) ?? card.current;
    chosen?.querySelector<HTMLButtonElement>(`[data-answer=${answer}]`)?.click();
  };
  const scope = "Agent work";
  useShortcuts(
    pending
      ? [
          { keys: "a", label: "Approve", scope, run: press("yes") },
          { keys: "d", label: "Deny", scope, run: press("no") },
        ]
      : [],
  );
  return (
    <div
      ref={card}
      data-question
      role="group"
      aria-label={`Approval: ${title}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: its keys work while it has the focus
      tabIndex={pending ? 0 : undefined}
      className="rounded-lg border border-info/40 bg-info-soft/50 px-3 py-2"
    >
      <p className="flex flex-wrap items-center gap-2">
        <span className="font-medium">{title}</span>
        {approval && <StatusBadge kind="approval" state={approval.state} />}
      </p>
      {approval?.comment && <p className="mt-1 text-muted">{approval.comment}</p>}
      {pending && (
        <div className="mt-2 flex items-center gap-2">
          <Button small data-answer="yes" look="primary" busy={decide.isPending} onClick={() => decide.mutate({ answer: "approve" })}>
            Approve <KeyHint keys="A" />
          </Button>
          <Button small data-answer="no" disabled={decide.isPending} onClick={() => setAsking(true)}>
            Deny <KeyHint keys="D" />
          </Button>
        </div>
      )}
      {asking && (
        <DenyDialog title={title} busy={decide.isPending} onClose={() => setAsking(false)} onDeny={(comment) => decide.mutate({ answer: "reject", comment })} />
      )}
    </div>
  );
}
