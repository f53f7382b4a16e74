import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { FormDialog } from "@/ui/dialog";
import { Checkbox, Field, filledIn, Input, Select, Textarea } from "@/ui/field";
import { done } from "@/ui/toast";

type Adapter = NonNullable<Schemas["NewAgent"]["adapter"]>;

/** What each adapter is, and whether it takes a model. */
const ADAPTERS: Record<Adapter, { label: string; hint: string; model?: boolean }> = {
  claude: { label: "Claude Code", hint: "Runs claude in the sandbox. Its template must have the program.", model: true },
  codex: { label: "Codex", hint: "Runs codex in the sandbox. Its template must have the program.", model: true },
  opencode: { label: "OpenCode", hint: "Runs opencode in the sandbox; the model is provider/model.", model: true },
  gemini: { label: "Gemini CLI", hint: "Runs gemini in the sandbox. Its template must have the program.", model: true },
  aider: { label: "Aider", hint: "Runs aider in the sandbox. Its template must have the program.", model: true },
  builtin: { label: "Built-in", hint: "A loop in the server; needs only a model (setting llm_model).", model: true },
  command: { label: "Command", hint: "Any program. {task}, {title} and {workdir} are replaced." },
  external: { label: "External", hint: "A program elsewhere asks for work and reports." },
};

export function NewAgentDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [adapter, setAdapter] = useState<Adapter>("claude");
  const create = useMutation({
    mutationFn: (body: Schemas["NewAgent"]) => data(api.POST("/api/v1/agents", { body })),
    onSuccess: (agent) => {
      void queries.invalidateQueries({ queryKey: keys.agents });
      done(`The agent ${agent.name} was created`);
      onClose();
      void navigate({ to: "/work", search: { agent: agent.id } });
    },
  });
  const submit = (fields: FormData) => {
    const { name, command, approve_push, ...texts } = filledIn(fields);
    const config: Record<string, unknown> = { ...texts };
    if (approve_push) config.approve_push = true;
    if (command) config.command = ["bash", "-c", command];
    create.mutate({ name, adapter, config } as Schemas["NewAgent"]);
  };
  return (
    <FormDialog
      onClose={onClose}
      title="New agent"
      description="A program that works on tasks, each in a sandbox of its own."
      action="Create"
      busy={create.isPending}
      error={create.error}
      onSubmit={submit}
    >
      <Field label="Name">
        <Input name="name" required maxLength={100} autoFocus autoComplete="off" />
      </Field>
      <Field label="Adapter" hint={ADAPTERS[adapter].hint}>
        <Select value={adapter} onChange={(event) => setAdapter(event.target.value as Adapter)} className="w-full">
          {Object.entries(ADAPTERS).map(([name, each]) => (
            <option key={name} value={name}>
              {each.label}
            </option>
          ))}
        </Select>
      </Field>
      {ADAPTERS[adapter].model && (
        <Field label="Model" hint="Empty: the program's own choice.">
          <Input name="model" autoComplete="off" />
        </Field>
      )}
      {adapter === "command" && (
        <Field label="Command" hint="Run by bash in the checkout. The task is in $CAISSON_TASK.">
          <Textarea name="command" required spellCheck={false} className="font-mono text-[13px]" />
        </Field>
      )}
      <Field label="Instructions" hint="Added to every task.">
        <Textarea name="instructions" rows={3} />
      </Field>
      <Field label="Template" hint="Of its sandboxes. Empty: the server's default.">
        <Input name="template" autoComplete="off" />
      </Field>
      <Checkbox name="approve_push" label="A person has to agree before its work is pushed" className="mb-3" />
    </FormDialog>
  );
}
