import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus } from "lucide-react";
import { type FormEvent, useState } from "react";
import { type Schemas, api, data } from "@/api/client";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { ConfirmDialog, Dialog } from "@/ui/dialog";
import { Field, Input } from "@/ui/field";
import { Card } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Ago } from "@/ui/time";
import { done, failed } from "@/ui/toast";

type Key = Schemas["Key"];
const QUERY = ["keys"];

/** Makes a key and shows it once: the server keeps only its hash. */
function NewKey({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const make = useMutation({
    mutationFn: (name: string) => data(api.POST("/api/v1/keys", { body: { name } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: QUERY }),
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    make.mutate(String(new FormData(event.currentTarget).get("name")));
  };
  const key = (make.data as { key?: string } | undefined)?.key;
  return (
    <Dialog
      open
      onClose={onClose}
      title="New API key"
      description={key ? "This is the only time it is shown." : "For one program. All your keys may see and do what you may."}
      footer={
        key ? (
          <Button look="primary" onClick={onClose}>
            I have it
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button look="primary" type="submit" form="new-key" busy={make.isPending}>
              Create
            </Button>
          </>
        )
      }
    >
      {key ? (
        <p className="flex items-center gap-2 rounded-md bg-sunken p-3">
          <code className="min-w-0 flex-1 font-mono text-[13px] break-all">{key}</code>
          <CopyButton text={key} label="Copy the key" />
        </p>
      ) : (
        <form id="new-key" onSubmit={submit}>
          <Field label="Name" error={make.error?.message}>
            <Input name="name" required maxLength={100} autoFocus placeholder="laptop" />
          </Field>
        </form>
      )}
    </Dialog>
  );
}

export function Keys() {
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const queries = useQueryClient();
  const list = useQuery({ queryKey: QUERY, queryFn: async () => (await data(api.GET("/api/v1/keys"))).keys });
  const revoke = useMutation({
    mutationFn: (key: Key) => data(api.DELETE("/api/v1/keys/{id}", { params: { path: { id: key.id } } })),
    onSuccess: (_, key) => {
      done(`The key ${key.name} is revoked`);
      setRevoking(null);
    },
    onError: (error) => failed("The key could not be revoked", error),
    onSettled: () => queries.invalidateQueries({ queryKey: QUERY }),
  });
  const add = (
    <Button small look="primary" icon={<Plus aria-hidden className="size-4" />} onClick={() => setMaking(true)}>
      New key
    </Button>
  );
  return (
    <Card title="API keys" actions={add}>
      {list.isPending ? (
        <SkeletonRows rows={3} />
      ) : list.isError ? (
        <ErrorState error={list.error} onRetry={() => void list.refetch()} />
      ) : list.data.length === 0 ? (
        <EmptyState icon={KeyRound} title="No API keys yet">
          Create one for every program that calls this server, so that each can be revoked alone. The server's first key
          is in the file api-key of its data directory.
        </EmptyState>
      ) : (
        <ul className="divide-y divide-line">
          {list.data.map((key) => (
            <li key={key.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
              <span className="min-w-0 flex-1 truncate font-medium">{key.name}</span>
              <code className="font-mono text-xs text-muted">{key.hint}</code>
              <span className="text-[13px] text-muted">
                {key.last_used_at ? (
                  <>
                    used <Ago time={key.last_used_at} />
                  </>
                ) : (
                  "never used"
                )}
              </span>
              {key.revoked_at ? (
                <Badge>Revoked</Badge>
              ) : (
                <Button small look="danger" onClick={() => setRevoking(key)} aria-label={`Revoke ${key.name}`}>
                  Revoke
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
      {making && <NewKey onClose={() => setMaking(false)} />}
      {revoking && (
        <ConfirmDialog
          open
          onClose={() => setRevoking(null)}
          onConfirm={() => revoke.mutate(revoking)}
          busy={revoke.isPending}
          title={`Revoke the key ${revoking.name}?`}
          lost="Programs that use it are refused at once. This cannot be undone."
          action="Revoke"
        />
      )}
    </Card>
  );
}
