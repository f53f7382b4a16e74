import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { api, data, type Schemas } from "@/api/client";
import { agentsQuery, keys } from "@/api/queries";
import { FormDialog } from "@/ui/dialog";
import { Field, filledIn, Input, Select, Textarea } from "@/ui/field";
import { modelsQuery } from "./queries";

export function NewSessionDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const agents = useQuery(agentsQuery).data ?? [];
  const models = useQuery(modelsQuery).data ?? [];
  const create = useMutation({
    mutationFn: (body: Partial<Schemas["NewSession"]>) => data(api.POST("/api/v1/sessions", { body: body as Schemas["NewSession"] })),
    onSuccess: (session) => {
      void queries.invalidateQueries({ queryKey: keys.sessions });
      onClose();
      void navigate({ to: "/work/session/$sessionId", params: { sessionId: session.id } });
    },
  });
  return (
    <FormDialog
      onClose={onClose}
      title="New session"
      description="A conversation with an agent in a sandbox of its own, which sleeps while nobody uses it."
      action="Begin"
      busy={create.isPending}
      error={create.error}
      onSubmit={(fields) => create.mutate(filledIn(fields))}
    >
      <Field label="Agent" hint={agents.length === 0 ? "Create an agent first: a session without one has a sandbox, but nobody answers." : undefined}>
        <Select name="agent_id" className="w-full" defaultValue={agents[0]?.id} key={agents[0]?.id}>
          {agents.map((agent) => (
            <option key={agent.id} value={agent.id}>
              {agent.name}
            </option>
          ))}
          <option value="">None</option>
        </Select>
      </Field>
      <Field label="Repository" hint="owner/name or an address. Empty: an empty directory.">
        <Input name="repo_url" autoComplete="off" spellCheck={false} />
      </Field>
      <Field label="Model">
        <Select name="model" className="w-full">
          <option value="">The agent's own choice</option>
          {models.map((model) => (
            <option key={model.id} value={model.id}>
              {model.id}
            </option>
          ))}
        </Select>
      </Field>
      <Field label="First message" hint="Ctrl+Enter begins.">
        <Textarea name="message" autoFocus />
      </Field>
    </FormDialog>
  );
}
