import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { snapshotsQuery, templatesQuery } from "@/api/e2b";
import { keys } from "@/api/queries";
import { FormDialog } from "@/ui/dialog";
import { Checkbox, Field, filledIn, Input, Select } from "@/ui/field";
import { createSandbox } from "./queries";

const LIVES = [
  [900, "15 minutes"],
  [3600, "1 hour"],
  [14_400, "4 hours"],
  [86_400, "24 hours"],
] as const;

/** Makes a sandbox from a template or a snapshot, and goes to it. */
export function CreateSandboxDialog({ template, onClose }: { template?: string; onClose: () => void }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const templates = useQuery(templatesQuery).data ?? [];
  const snapshots = useQuery(snapshotsQuery).data ?? [];
  const create = useMutation({
    mutationFn: createSandbox,
    onSuccess: async (made) => {
      await queries.invalidateQueries({ queryKey: keys.sandboxes });
      onClose();
      await navigate({ to: "/sandboxes/$sandboxId", params: { sandboxId: made.id } });
    },
  });
  const submit = (fields: FormData) => {
    const { template: chosen, life, internet, purpose } = filledIn(fields);
    create.mutate({ template: chosen, timeout_s: Number(life), allow_internet: internet === "on", ...(purpose && { metadata: { purpose } }) });
  };
  return (
    <FormDialog onClose={onClose} title="New sandbox" action="Create" busy={create.isPending} error={create.error} onSubmit={submit}>
      <Field label="Template">
        <Select name="template" className="w-full" defaultValue={template} key={templates.length + snapshots.length}>
          {templates.map((each) => (
            <option key={each.templateID} value={each.templateID}>
              {each.aliases?.[0] ?? each.templateID}
            </option>
          ))}
          {snapshots.length > 0 && (
            <optgroup label="Snapshots">
              {snapshots.map((each) => (
                <option key={each.snapshotID}>{each.snapshotID}</option>
              ))}
            </optgroup>
          )}
        </Select>
      </Field>
      <Field label="Lives for" hint="It can be extended later, and paused at any time.">
        <Select name="life" className="w-full" defaultValue={3600}>
          {LIVES.map(([seconds, text]) => (
            <option key={seconds} value={seconds}>
              {text}
            </option>
          ))}
        </Select>
      </Field>
      <Field label="Purpose" hint="Shown in the list, so that you find it again.">
        <Input name="purpose" maxLength={200} autoComplete="off" />
      </Field>
      <Checkbox name="internet" label="May reach the internet" defaultChecked className="mb-3" />
    </FormDialog>
  );
}
