import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data } from "@/api/client";
import { agentsQuery, keys } from "@/api/queries";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Checkbox, Field, Input, Select, Textarea } from "@/ui/field";
import { failed } from "@/ui/toast";
import { FilesField } from "./FilesField";
import type { Build } from "./queries";
import { type BuildForm, EMPTY, missing, requestOf, type Runner } from "./request";

const RUNNERS: { id: Runner; label: string; hint: string }[] = [
  { id: "files", label: "Files", hint: "You give the files." },
  { id: "command", label: "Agent", hint: "An agent writes them in the sandbox." },
  { id: "llm", label: "Model", hint: "The server's language model writes them." },
];

/** A new build; with `parent`, the next version of its project. */
export default function CreateBuildDialog({ parent, onClose }: { parent?: Build; onClose: () => void }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const agents = useQuery(agentsQuery).data ?? [];
  const [form, setForm] = useState<BuildForm>({
    ...EMPTY,
    project: parent?.project ?? "",
    runner: RUNNERS.find((each) => each.id === parent?.runner)?.id ?? "files",
  });
  const [asked, setAsked] = useState(false);
  const problems = missing(form);
  const shown = asked ? problems : {};
  const set = (change: Partial<BuildForm>) => setForm((before) => ({ ...before, ...change }));
  const create = useMutation({
    mutationFn: () => data(api.POST("/api/v1/builds", { body: requestOf(form, parent?.id) })),
    onSuccess: (build) => {
      void queries.invalidateQueries({ queryKey: keys.builds });
      onClose();
      void navigate({ to: "/builds/$buildId", params: { buildId: build.id } });
    },
    onError: (error) => failed("The build was not started", error),
  });
  const submit = () => {
    setAsked(true);
    if (Object.keys(problems).length === 0 && !create.isPending) create.mutate();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title={parent ? `Change ${parent.project}` : "New build"}
      description={parent ? `Goes on from ${parent.build_version}. The next version takes its place; if it fails, ${parent.build_version} comes back.` : undefined}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" busy={create.isPending} onClick={submit}>
            Build
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => event.preventDefault()}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
        }}
      >
        {!parent && (
          <Field label="Project" hint="Versions are counted per project." error={shown.project}>
            <Input value={form.project} autoFocus onChange={(event) => set({ project: event.target.value })} />
          </Field>
        )}
        <fieldset className="mb-3">
          <legend className="mb-1 text-[13px] font-medium">Who writes the files</legend>
          <div className="grid gap-2 sm:grid-cols-3">
            {RUNNERS.map(({ id, label, hint }) => (
              <label
                key={id}
                className="flex cursor-pointer items-start gap-2 rounded-md border border-line p-2 has-checked:border-accent has-checked:bg-accent-soft"
              >
                <input type="radio" name="runner" className="mt-0.5 size-4 accent-(--accent)" checked={form.runner === id} onChange={() => set({ runner: id })} />
                <span>
                  <span className="block font-medium">{label}</span>
                  <span className="block text-xs text-muted">{hint}</span>
                </span>
              </label>
            ))}
          </div>
        </fieldset>
        <Field label={parent ? "What shall change" : "Goal"} hint={form.runner === "files" ? "May be empty: a note on this version." : undefined} error={shown.goal}>
          <Textarea rows={3} value={form.goal} onChange={(event) => set({ goal: event.target.value })} />
        </Field>
        {form.runner === "files" && <FilesField files={form.files} onChange={(files) => set({ files })} error={shown.files} />}
        {form.runner === "command" && (
          <Field label="Agent" error={shown.agentId} hint={agents.length === 0 ? "There is no agent yet. Create one in Agent work." : undefined}>
            <Select value={form.agentId} onChange={(event) => set({ agentId: event.target.value })}>
              <option value="">Choose an agent</option>
              {agents.map((agent) => (
                <option key={agent.id} value={agent.id}>
                  {agent.name} ({agent.adapter})
                </option>
              ))}
            </Select>
          </Field>
        )}
        <Advanced form={form} set={set} envError={shown.env} />
      </form>
    </Dialog>
  );
}

function Advanced({ form, set, envError }: { form: BuildForm; set: (change: Partial<BuildForm>) => void; envError?: string }) {
  return (
    <details open={envError ? true : undefined}>
      <summary className="mb-2 cursor-pointer py-1 text-[13px] font-medium text-muted">Commands, port and variables</summary>
      <p className="mb-3 text-xs text-muted">What is empty is found out from the files.</p>
      <div className="grid gap-x-3 sm:grid-cols-2">
        <Field label="Install command">
          <Input className="font-mono" value={form.install} onChange={(event) => set({ install: event.target.value })} />
        </Field>
        <Field label="Start command">
          <Input className="font-mono" value={form.start} onChange={(event) => set({ start: event.target.value })} />
        </Field>
        <Field label="Port">
          <Input type="number" min={1} max={65535} value={form.port} onChange={(event) => set({ port: event.target.value })} />
        </Field>
        <Field label="Template">
          <Input value={form.template} onChange={(event) => set({ template: event.target.value })} />
        </Field>
      </div>
      <Field label="Checks" hint="One command a line.">
        <Textarea rows={2} className="font-mono" disabled={form.skipChecks} value={form.checks} onChange={(event) => set({ checks: event.target.value })} />
      </Field>
      <Checkbox label="No checks at all" className="mb-3" checked={form.skipChecks} onChange={(event) => set({ skipChecks: event.target.checked })} />
      {form.runner !== "files" && (
        <Field label="Attempts at mending" hint="How often the writer may mend what the checks find.">
          <Select value={form.maxFixes} onChange={(event) => set({ maxFixes: event.target.value })}>
            {["0", "1", "2", "3", "4", "5"].map((count) => (
              <option key={count}>{count}</option>
            ))}
          </Select>
        </Field>
      )}
      <Field label="Environment variables" hint="NAME=value, one a line. They are stored: no place for secrets." error={envError}>
        <Textarea rows={2} className="font-mono" value={form.env} onChange={(event) => set({ env: event.target.value })} />
      </Field>
    </details>
  );
}
