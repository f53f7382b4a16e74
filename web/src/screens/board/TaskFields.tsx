import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type KeyboardEvent, useState } from "react";
import { keys } from "@/api/queries";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { Field, Input, Select, Textarea } from "@/ui/field";
import { capitalized, repoName } from "@/ui/format";
import { Ago } from "@/ui/time";
import { failed } from "@/ui/toast";
import { changeTask } from "./actions";
import { useBoard } from "./context";
import { nameOf, PRIORITIES, type Task } from "./model";

type Change = Parameters<typeof changeTask>[1];

/** What a task says. Choices are saved at once, texts with the button. */
export function TaskFields({ task }: { task: Task }) {
  const { agents } = useBoard();
  const queries = useQueryClient();
  const [draft, setDraft] = useState<Partial<Pick<Task, "title" | "description" | "repo_url" | "base_branch">>>({});
  const [busy, setBusy] = useState(false);
  const fixed = task.status === "in_progress";
  const save = async (change: Change) => {
    setBusy(true);
    try {
      queries.setQueryData(keys.task(task.id), await changeTask(task.id, change));
      await queries.invalidateQueries({ queryKey: keys.board });
      return true;
    } catch (error) {
      failed(`${nameOf(task)} stays as it was`, error);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const changed = Object.keys(draft).length > 0;
  const submit = async (event?: FormEvent) => {
    event?.preventDefault();
    if (changed && !busy && (await save(draft))) setDraft({});
  };
  const text = (name: keyof typeof draft) => ({
    value: draft[name] ?? task[name],
    disabled: fixed,
    onChange: (event: { target: { value: string } }) => setDraft({ ...draft, [name]: event.target.value }),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void submit();
    },
  });
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Field label="Title">
        <Input {...text("title")} required maxLength={500} />
      </Field>
      <Field label="Description">
        <Textarea {...text("description")} rows={6} maxLength={10_000} />
      </Field>
      <div className="grid grid-cols-2 gap-x-3">
        <Field label="Agent">
          <Select
            className="w-full"
            disabled={fixed || busy}
            value={task.agent_id ?? ""}
            onChange={(event) => void save({ agent_id: event.target.value || null })}
          >
            <option value="">Next free one</option>
            {agents.map((agent) => (
              <option key={agent.id} value={agent.id}>
                {agent.name}
              </option>
            ))}
          </Select>
        </Field>
        <Field label="Priority">
          <Select
            className="w-full"
            disabled={busy}
            value={task.priority}
            onChange={(event) => void save({ priority: event.target.value as Task["priority"] })}
          >
            {PRIORITIES.map((each) => (
              <option key={each} value={each}>
                {capitalized(each)}
              </option>
            ))}
          </Select>
        </Field>
        <Field label="Repository">
          <Input {...text("repo_url")} maxLength={2000} title={repoName(task.repo_url)} />
        </Field>
        <Field label="Base branch">
          <Input {...text("base_branch")} placeholder="Default branch" maxLength={200} />
        </Field>
      </div>
      {changed && (
        <div className="flex gap-2 pb-3">
          <Button type="submit" look="primary" small busy={busy}>
            Save
          </Button>
          <Button small onClick={() => setDraft({})}>
            Discard
          </Button>
        </div>
      )}
      <Dependencies task={task} save={save} />
      <dl className="grid grid-cols-[auto_1fr] items-center gap-x-4 gap-y-1 pb-4 text-[13px] [&>dt]:text-muted">
        {task.git_branch && (
          <>
            <dt>Branch</dt>
            <dd className="flex min-w-0 items-center gap-1">
              <code className="truncate font-mono text-xs">{task.git_branch}</code>
              <CopyButton text={task.git_branch} label="Copy the name of the branch" />
            </dd>
          </>
        )}
        <dt>Created</dt>
        <dd>
          <Ago time={task.created_at} />
        </dd>
        <dt>Changed</dt>
        <dd>
          <Ago time={task.updated_at} />
        </dd>
      </dl>
    </form>
  );
}

function Dependencies({ task, save }: { task: Task; save: (change: Change) => Promise<boolean> }) {
  const { around } = useBoard();
  const others = [...around.tasks.values()].filter((each) => each.id !== task.id && !task.blocked_by.includes(each.id) && each.status !== "done");
  return (
    <div className="mb-3">
      <Field label="Waits for" hint={task.blocked_by.length === 0 ? "Tasks that must be done first." : undefined}>
        <Select
          className="w-full"
          value=""
          onChange={(event) => void save({ blocked_by: [...task.blocked_by, event.target.value] })}
        >
          <option value="">Add a task…</option>
          {others.map((each) => (
            <option key={each.id} value={each.id}>
              {nameOf(each)}
            </option>
          ))}
        </Select>
      </Field>
      <ul className="-mt-2 flex flex-col gap-1">
        {task.blocked_by.map((id) => {
          const other = around.tasks.get(id);
          return (
            <li key={id} className="flex items-center gap-2 text-[13px]">
              <span className="min-w-0 flex-1 truncate">{other ? nameOf(other) : id}</span>
              <Button
                small
                look="ghost"
                aria-label={`Remove ${other ? nameOf(other) : id}`}
                onClick={() => void save({ blocked_by: task.blocked_by.filter((each) => each !== id) })}
              >
                Remove
              </Button>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
