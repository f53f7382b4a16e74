import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Camera, Clock, Download, Ellipsis, GitFork, Pause, Play, Trash2 } from "lucide-react";
import { useState } from "react";
import { data, api } from "@/api/client";
import { e2b, snapshotsQuery } from "@/api/e2b";
import { keys } from "@/api/queries";
import { Button, IconButton } from "@/ui/button";
import { ConfirmDialog, FormDialog } from "@/ui/dialog";
import { saveFile } from "@/ui/download";
import { Field, filledIn, Input } from "@/ui/field";
import { Menu } from "@/ui/menu";
import { done, failed } from "@/ui/toast";
import { hasEnded, isChanging } from "./boxes";
import { type Detail, useAction } from "./queries";

type Asking = "kill" | "snapshot" | "extend" | null;

/** What E2B's routes do with a sandbox; they tell no events, so what is cached is made stale here. */
function useChanges(box: Detail) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const id = box.sandboxID ?? box.backend_id ?? box.id;
  const settled = () => queries.invalidateQueries({ queryKey: keys.sandboxes });
  const extend = useMutation({
    mutationFn: (seconds: number) => {
      const left = Math.max(0, Date.parse(box.endAt ?? "") - Date.now()) / 1000;
      return e2b.extend(id, Math.round((left || 0) + seconds));
    },
    onSuccess: () => done("Its time is extended"),
    onError: (error) => failed("Its time could not be extended", error),
    onSettled: settled,
  });
  const snapshot = useMutation({
    mutationFn: (name: string) => e2b.snapshot(id, name || undefined),
    onSuccess: (made) => done(`Snapshot ${made.snapshotID} was created`),
    onError: (error) => failed("The snapshot could not be created", error),
    onSettled: () => queries.invalidateQueries({ queryKey: snapshotsQuery.queryKey }),
  });
  const fork = useMutation({
    mutationFn: () => e2b.fork(id),
    onSuccess: (made) => {
      done(`Forked as ${made}`);
      void navigate({ to: "/sandboxes/$sandboxId", params: { sandboxId: made } });
    },
    onError: (error) => failed("It could not be forked", error),
    onSettled: settled,
  });
  return { extend, snapshot, fork };
}

async function downloadDiagnostics(id: string) {
  try {
    const found = await data(api.GET("/api/v1/sandboxes/{id}/diagnostics", { params: { path: { id } } }));
    saveFile(`${id}-diagnostics.json`, JSON.stringify(found, null, 2), "application/json");
  } catch (error) {
    failed("The diagnostics could not be read", error);
  }
}

/** The actions that fit the state. While it changes, none can be pressed. */
export function Actions({ box }: { box: Detail }) {
  const [asking, setAsking] = useState<Asking>(null);
  const action = useAction();
  const { extend, snapshot, fork } = useChanges(box);
  const close = () => setAsking(null);
  const locked = isChanging(box.status) || action.isPending || snapshot.isPending || fork.isPending;
  const act = (what: "pause" | "resume" | "kill") => action.mutate({ action: what, ids: [box.id] });
  const working = (what: string) => action.isPending && action.variables?.action === what;
  const icon = "size-4";
  const running = box.status === "running";
  return (
    <>
      {running && (
        <>
          <Button icon={<Pause aria-hidden className={icon} />} disabled={locked} busy={working("pause")} onClick={() => act("pause")}>
            Pause
          </Button>
          <Menu
            label="Extend"
            trigger={
              <Button icon={<Clock aria-hidden className={icon} />} disabled={locked} busy={extend.isPending}>
                Extend
              </Button>
            }
            items={[
              { label: "15 minutes more", onSelect: () => extend.mutate(900) },
              { label: "1 hour more", onSelect: () => extend.mutate(3600) },
              { label: "Another time…", onSelect: () => setAsking("extend") },
            ]}
          />
        </>
      )}
      {box.status === "paused" && (
        <Button look="primary" icon={<Play aria-hidden className={icon} />} disabled={locked} busy={working("resume")} onClick={() => act("resume")}>
          Resume
        </Button>
      )}
      {!hasEnded(box.status) && (
        <Button look="danger" icon={<Trash2 aria-hidden className={icon} />} disabled={locked} busy={working("kill")} onClick={() => setAsking("kill")}>
          Kill
        </Button>
      )}
      <Menu
        label="More"
        trigger={
          <IconButton label="More actions">
            <Ellipsis aria-hidden className={icon} />
          </IconButton>
        }
        items={[
          ...(running
            ? [
                { label: "Snapshot…", icon: <Camera aria-hidden className={icon} />, disabled: locked, onSelect: () => setAsking("snapshot") },
                { label: "Fork", icon: <GitFork aria-hidden className={icon} />, disabled: locked, onSelect: () => fork.mutate() },
                null,
              ]
            : []),
          { label: "Download diagnostics", icon: <Download aria-hidden className={icon} />, onSelect: () => void downloadDiagnostics(box.id) },
        ]}
      />
      <ConfirmDialog
        open={asking === "kill"}
        onClose={close}
        onConfirm={() => {
          close();
          act("kill");
        }}
        title={`Kill ${box.id}?`}
        lost="Its processes, memory and files are lost. What was pushed stays."
        action="Kill"
      />
      {asking === "extend" && (
        <FormDialog
          title="Extend its time"
          action="Extend"
          busy={extend.isPending}
          onClose={close}
          onSubmit={(fields) => extend.mutate(Number(fields.get("minutes")) * 60, { onSuccess: close })}
        >
          <Field label="Minutes more" hint="The server has a longest life for sandboxes; more than that is refused.">
            <Input name="minutes" autoFocus type="number" min={1} required defaultValue={30} />
          </Field>
        </FormDialog>
      )}
      {asking === "snapshot" && (
        <FormDialog
          title={`Snapshot of ${box.id}`}
          action="Create"
          busy={snapshot.isPending}
          onClose={close}
          onSubmit={(fields) => snapshot.mutate(filledIn(fields).name ?? "", { onSuccess: close })}
        >
          <Field label="Name" hint="Optional. New sandboxes can start from it; this one goes on.">
            <Input name="name" autoFocus autoComplete="off" maxLength={100} pattern="[a-z0-9_\-]+(:[a-z0-9_.\-]+)?" />
          </Field>
        </FormDialog>
      )}
    </>
  );
}
