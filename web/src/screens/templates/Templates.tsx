import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Camera, Layers, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { e2b, snapshotsQuery, type Template, templatesQuery } from "@/api/e2b";
import { CreateSandboxDialog } from "@/screens/sandboxes/CreateSandboxDialog";
import { Button, IconButton } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { ConfirmDialog } from "@/ui/dialog";
import { bytes, MB, plural } from "@/ui/format";
import { Card, Page } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Ago } from "@/ui/time";
import { done, failed } from "@/ui/toast";

const nameOf = (template: Template) => template.aliases?.[0] ?? template.templateID;

function NewButton({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <Button small aria-label={`New sandbox from ${name}`} icon={<Plus aria-hidden className="size-4" />} onClick={onClick}>
      New sandbox
    </Button>
  );
}

function TemplateCard({ template, onUse }: { template: Template; onUse: () => void }) {
  const name = nameOf(template);
  return (
    <Card title={name} actions={<NewButton name={name} onClick={onUse} />}>
      <dl className="grid grid-cols-[7rem_1fr] gap-y-1 px-4 py-3">
        <dt className="text-muted">Machine</dt>
        <dd>
          {plural(template.cpuCount, "CPU")}, {bytes(template.memoryMB * MB)} memory, {bytes(template.diskSizeMB * MB)} disk
        </dd>
        <dt className="text-muted">Used</dt>
        <dd>{plural(template.spawnCount, "time")}</dd>
        <dt className="text-muted">Updated</dt>
        <dd>
          <Ago time={template.updatedAt} />
        </dd>
        <dt className="text-muted">envd</dt>
        <dd>{template.envdVersion}</dd>
        <dt className="text-muted">In code</dt>
        <dd className="flex items-center">
          <code className="truncate text-[13px]">Sandbox.create("{name}")</code>
          <CopyButton text={`Sandbox.create("${name}")`} label={`Copy the call for ${name}`} />
        </dd>
      </dl>
    </Card>
  );
}

function Snapshots({ onUse }: { onUse: (id: string) => void }) {
  const queries = useQueryClient();
  const snapshots = useQuery(snapshotsQuery);
  const [deleting, setDeleting] = useState("");
  const remove = useMutation({
    mutationFn: e2b.deleteSnapshot,
    onSuccess: (_, id) => done(`${id} is deleted`),
    onError: (error, id) => failed(`${id} could not be deleted`, error),
    onSettled: () => {
      setDeleting("");
      return queries.invalidateQueries({ queryKey: snapshotsQuery.queryKey });
    },
  });
  return (
    <section className="mt-6">
      <h2 className="mb-2 font-semibold">Snapshots</h2>
      {snapshots.error ? (
        <ErrorState error={snapshots.error} onRetry={() => void snapshots.refetch()} />
      ) : !snapshots.data ? (
        <SkeletonRows rows={2} />
      ) : snapshots.data.length === 0 ? (
        <EmptyState icon={Camera} title="No snapshots yet">
          A snapshot keeps a running sandbox as it is. Create one from the menu of a sandbox.
        </EmptyState>
      ) : (
        <ul className="rounded-lg border border-line bg-panel">
          {snapshots.data.map(({ snapshotID: id }) => (
            <li key={id} className="flex items-center gap-2 border-line px-4 py-2 not-first:border-t">
              <Camera aria-hidden className="size-4 text-muted" />
              <span className="min-w-0 flex-1 truncate font-mono text-[13px]">{id}</span>
              <NewButton name={id} onClick={() => onUse(id)} />
              <IconButton label={`Delete ${id}`} small onClick={() => setDeleting(id)}>
                <Trash2 aria-hidden className="size-4" />
              </IconButton>
            </li>
          ))}
        </ul>
      )}
      <ConfirmDialog
        open={deleting !== ""}
        onClose={() => setDeleting("")}
        onConfirm={() => remove.mutate(deleting)}
        busy={remove.isPending}
        title={`Delete ${deleting}?`}
        lost="No new sandbox can start from it. Those that did live on."
        action="Delete"
      />
    </section>
  );
}

/** What sandboxes are made from: templates of the server, and snapshots of the user. */
export default function Templates() {
  const templates = useQuery(templatesQuery);
  const [using, setUsing] = useState("");
  return (
    <Page title="Templates">
      {templates.error ? (
        <ErrorState error={templates.error} onRetry={() => void templates.refetch()} />
      ) : !templates.data ? (
        <SkeletonRows height="h-24" rows={2} />
      ) : templates.data.length === 0 ? (
        <EmptyState icon={Layers} title="No templates yet">
          Templates are prepared on the server.
        </EmptyState>
      ) : (
        <div className="grid gap-4 md:grid-cols-2 xl:grid-cols-3">
          {templates.data.map((template) => (
            <TemplateCard key={template.templateID} template={template} onUse={() => setUsing(template.templateID)} />
          ))}
        </div>
      )}
      <Snapshots onUse={setUsing} />
      {using && <CreateSandboxDialog template={using} onClose={() => setUsing("")} />}
    </Page>
  );
}
