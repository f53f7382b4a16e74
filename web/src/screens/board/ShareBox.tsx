import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link2 } from "lucide-react";
import { useState } from "react";
import { json } from "@/api/client";
import { keys } from "@/api/queries";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { ConfirmDialog } from "@/ui/dialog";
import { Input, Select } from "@/ui/field";
import { exact } from "@/ui/time";
import { done, failed } from "@/ui/toast";

interface Share {
  id: string;
  expires_at: string;
  created_at?: string;
}

const HOURS: [number, string][] = [
  [24, "a day"],
  [168, "a week"],
  [720, "30 days"],
];

/** Links by which anybody can read the task. The address is shown once, when it is made. */
export function ShareBox({ taskId }: { taskId: string }) {
  const path = `/api/v1/tasks/${taskId}/shares`;
  const queryKey = [...keys.task(taskId), "shares"];
  const queries = useQueryClient();
  const shares = useQuery({ queryKey, queryFn: async () => (await json<{ shares: Share[] }>(path)).shares });
  const [hours, setHours] = useState(168);
  const [made, setMade] = useState<(Share & { url: string }) | null>(null);
  const [doomed, setDoomed] = useState<Share | null>(null);
  const [busy, setBusy] = useState(false);
  const act = async (what: string, call: () => Promise<void>) => {
    setBusy(true);
    await call().catch((error) => failed(what, error));
    setBusy(false);
    await queries.invalidateQueries({ queryKey });
  };
  const make = () =>
    act("No link was created", async () => setMade(await json<Share & { url: string }>(path, { json: { expires_hours: hours } })));
  const revoke = (share: Share) =>
    act("The link still works", async () => {
      await json(`${path}/${share.id}`, { method: "DELETE" });
      if (made?.id === share.id) setMade(null);
      setDoomed(null);
      done("The link does not work any more");
    });
  return (
    <>
      <p className="mb-2 text-muted">Whoever has the link can read the task, its activity and its changes, without signing in.</p>
      <div className="flex flex-wrap items-center gap-2">
        <Select aria-label="The link works for" value={hours} onChange={(event) => setHours(Number(event.target.value))}>
          {HOURS.map(([value, label]) => (
            <option key={value} value={value}>
              for {label}
            </option>
          ))}
        </Select>
        <Button busy={busy} icon={<Link2 aria-hidden className="size-4" />} onClick={() => void make()}>
          Create a link
        </Button>
      </div>
      {made && (
        <div className="mt-2 flex items-center gap-1">
          <Input readOnly aria-label="Link" value={made.url} onFocus={(event) => event.target.select()} />
          <CopyButton text={made.url} label="Copy the link" />
        </div>
      )}
      {made && <p className="mt-1 text-xs text-muted">Copy it now: it is not shown again.</p>}
      <ul className="mt-2 flex flex-col gap-1">
        {shares.data?.map((share) => (
          <li key={share.id} className="flex items-center gap-2 text-[13px]">
            <span className="flex-1 text-muted">
              Works until <time dateTime={share.expires_at}>{exact(share.expires_at)}</time>
            </span>
            <Button small look="ghost" onClick={() => setDoomed(share)}>
              Revoke
            </Button>
          </li>
        ))}
      </ul>
      {doomed && (
        <ConfirmDialog
          open
          busy={busy}
          onClose={() => setDoomed(null)}
          onConfirm={() => void revoke(doomed)}
          title={`Revoke the link that works until ${exact(doomed.expires_at)}?`}
          lost="Whoever has it cannot read the task any more. The same address never works again."
          action="Revoke"
        />
      )}
    </>
  );
}
