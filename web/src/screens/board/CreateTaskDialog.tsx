import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react";
import { ApiError, api, data, type Schemas } from "@/api/client";
import { agentsQuery, boardQuery, keys } from "@/api/queries";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Checkbox, Field, FormError, Input, Select, Textarea } from "@/ui/field";
import { capitalized, repoName } from "@/ui/format";
import { KeyHint } from "@/ui/kbd";
import { done, failed } from "@/ui/toast";
import { createTask, startLater, startTask } from "./actions";
import { nameOf, PRIORITIES, starterOf, type Task } from "./model";

const LAST_REPO = "caisson-last-repository";

const squadsQuery = {
  queryKey: keys.squads,
  queryFn: async () => (await data(api.GET("/api/v1/squads", { params: { query: { limit: 200 } } }))).squads,
};

function read(form: HTMLFormElement): Schemas["NewTask"] {
  const fields = new FormData(form);
  const text = (name: string) => String(fields.get(name) ?? "").trim();
  const who = text("who");
  const options: Record<string, unknown> = {
    ...(fields.get("draft") && { draft: true }),
    ...(fields.get("approve_push") && { approve_push: true }),
    ...(text("labels") && { labels: text("labels").split(/\s*,\s*/).filter(Boolean) }),
    ...(text("branch_name") && { branch_name: text("branch_name") }),
  };
  return {
    title: text("title"),
    description: text("description"),
    priority: text("priority") as Task["priority"],
    ...(text("repo") && { repo_url: text("repo") }),
    ...(text("base") && { base_branch: text("base") }),
    ...(who.startsWith("agent ") && { agent_id: who.slice(6) }),
    ...(who.startsWith("squad ") && { squad_id: who.slice(6) }),
    ...(text("after") && { blocked_by: [text("after")] }),
    ...(Object.keys(options).length > 0 && { options: options as never }),
  };
}

export default function CreateTaskDialog({ onClose }: { onClose: () => void }) {
  const known = useQuery(agentsQuery).data;
  const agents = known ?? [];
  const squads = useQuery(squadsQuery).data ?? [];
  const tasks = useQuery(boardQuery).data?.columns.flatMap((column) => column.tasks) ?? [];
  const repos = [...new Set(tasks.map((task) => task.repo_url).filter(Boolean))];
  const queries = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const [busy, setBusy] = useState<"" | "create" | "start">("");
  const [error, setError] = useState("");

  const begin = async (task: Task) => {
    const agent = starterOf(task, agents);
    try {
      const started = agent === undefined && agents.length > 0 ? await startLater(task.id) : await startTask(task.id, agent ? { agent_id: agent } : {});
      done(started.queued ? `${nameOf(task)} starts when an agent is free` : `${nameOf(task)} has started`);
    } catch (problem) {
      failed(`${nameOf(task)} was created, but could not start`, problem);
    }
  };
  const submit = async (start: boolean) => {
    if (busy || !form.current?.reportValidity()) return;
    setBusy(start ? "start" : "create");
    setError("");
    try {
      const wanted = read(form.current);
      const task = await createTask(wanted);
      if (wanted.repo_url) localStorage.setItem(LAST_REPO, wanted.repo_url);
      if (start) await begin(task);
      else done(`${nameOf(task)} was created`);
      await Promise.all([keys.board, keys.tasks, keys.agents].map((queryKey) => queries.invalidateQueries({ queryKey })));
      onClose();
    } catch (problem) {
      setError(problem instanceof ApiError ? problem.message : String(problem));
    } finally {
      setBusy("");
    }
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void submit(!event.shiftKey);
  };

  return (
    <Dialog
      open
      onClose={onClose}
      title="New task"
      wide
      footer={
        <>
          <Button busy={busy === "create"} disabled={busy !== ""} onClick={() => void submit(false)}>
            Create <KeyHint keys="Ctrl ⇧ ↵" />
          </Button>
          <Button look="primary" busy={busy === "start"} disabled={busy !== ""} onClick={() => void submit(true)}>
            Create and start <KeyHint keys="Ctrl ↵" />
          </Button>
        </>
      }
    >
      <form
        ref={form}
        onKeyDown={keyDown}
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          void submit(false);
        }}
      >
        <Field label="Title">
          <Input name="title" required maxLength={500} autoFocus autoComplete="off" placeholder="What should be done" />
        </Field>
        <Field label="Description" hint="What the agent has to know: what is wrong, what is wanted, how to check it.">
          <Textarea name="description" rows={5} maxLength={10_000} />
        </Field>
        <div className="grid gap-x-3 sm:grid-cols-2">
          <Field label="Repository" hint="owner/name or an address. Without one, the agent begins with an empty repository.">
            <Input name="repo" list="known-repositories" defaultValue={localStorage.getItem(LAST_REPO) ?? repos[0] ?? ""} autoComplete="off" />
          </Field>
          <Field label="Base branch" hint="The default branch if empty.">
            <Input name="base" maxLength={200} autoComplete="off" />
          </Field>
          <Field label="Agent" hint={known?.length === 0 ? "There is none yet: the task waits until you create one in Agent work." : undefined}>
            <Select name="who" className="w-full" defaultValue="">
              <option value="">Next free one</option>
              {agents.map((agent) => (
                <option key={agent.id} value={`agent ${agent.id}`}>
                  {agent.name} ({agent.adapter})
                </option>
              ))}
              {squads.map((squad) => (
                <option key={squad.id} value={`squad ${squad.id}`}>
                  Squad {squad.name}
                </option>
              ))}
            </Select>
          </Field>
          <Field label="Priority">
            <Select name="priority" className="w-full" defaultValue="medium">
              {PRIORITIES.map((each) => (
                <option key={each} value={each}>
                  {capitalized(each)}
                </option>
              ))}
            </Select>
          </Field>
        </div>
        <datalist id="known-repositories">
          {repos.map((url) => (
            <option key={url} value={url}>
              {repoName(url)}
            </option>
          ))}
        </datalist>
        <details className="mb-3">
          <summary className="cursor-pointer py-1 text-[13px] font-medium text-muted">More options</summary>
          <div className="mt-2 grid gap-x-3 sm:grid-cols-2">
            <Field label="Waits for">
              <Select name="after" className="w-full" defaultValue="">
                <option value="">Nothing</option>
                {tasks
                  .filter((task) => task.status !== "done")
                  .map((task) => (
                    <option key={task.id} value={task.id}>
                      {nameOf(task)}
                    </option>
                  ))}
              </Select>
            </Field>
            <Field label="Branch name" hint="One is made up if empty.">
              <Input name="branch_name" maxLength={200} autoComplete="off" />
            </Field>
            <Field label="Labels of the pull request" hint="Separated by commas.">
              <Input name="labels" autoComplete="off" />
            </Field>
            <div className="flex flex-col gap-2 pt-6">
              <Checkbox name="draft" label="The pull request stays a draft" />
              <Checkbox name="approve_push" label="Ask me before it is pushed" />
            </div>
          </div>
        </details>
        {error && <FormError>{error}</FormError>}
      </form>
    </Dialog>
  );
}
