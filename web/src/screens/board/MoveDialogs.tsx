// What is asked before a task moves.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, useState } from "react";
import { agentsQuery, boardQuery, keys } from "@/api/queries";
import { Button } from "@/ui/button";
import { ConfirmDialog, Dialog } from "@/ui/dialog";
import { Field, Select, Textarea } from "@/ui/field";
import { KeyHint } from "@/ui/kbd";
import { done, failed } from "@/ui/toast";
import { startLater } from "./actions";
import { MergeDialog } from "./MergeDialog";
import { type Agent, isFree, nameOf, type Task, titleOf } from "./model";
import { ask, useMove, useMoves } from "./moves";

const close = () => ask(null);
const onSend = (send: () => void) => (event: KeyboardEvent) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
};

/** Why nobody can begin, in a sentence. */
function reasonFor(task: Task, agents: Agent[], tasks: Task[]): string {
  const agent = agents.find((each) => each.id === task.agent_id);
  const other = tasks.find((each) => each.id === agent?.current_task_id);
  if (agent?.status === "paused") return `The agent ${agent.name} is paused.`;
  if (agent) return `The agent ${agent.name} works on ${other ? nameOf(other) : "another task"}. An agent does one task at a time.`;
  if (agents.length === 0) return "There is no agent yet.";
  return `All agents are at work (${agents.length}). An agent does one task at a time, so the agents are the limit of what is in progress.`;
}

function WipDialog({ task, reason, feedback }: { task: Task; reason?: string; feedback?: string }) {
  const agents = useQuery(agentsQuery).data ?? [];
  const tasks = useQuery(boardQuery).data?.columns.flatMap((column) => column.tasks) ?? [];
  const free = agents.filter(isFree);
  const [agent, setAgent] = useState("");
  const chosen = agent || free[0]?.id || "";
  const { carryOut } = useMove();
  const queries = useQueryClient();
  const later = async () => {
    close();
    try {
      const started = await startLater(task.id, feedback);
      done(started.queued ? `${nameOf(task)} starts when an agent is free` : `${nameOf(task)} has started`);
    } catch (error) {
      failed(`${nameOf(task)} stays in ${titleOf(task.status)}`, error, () => void later());
    }
    await queries.invalidateQueries({ queryKey: keys.board });
  };
  return (
    <Dialog
      open
      onClose={close}
      title="No agent is free"
      description={reason ?? reasonFor(task, agents, tasks)}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          {agents.length > 0 && <Button look={free.length ? "plain" : "primary"} onClick={() => void later()}>Start when one is free</Button>}
          {free.length > 0 && (
            <Button look="primary" onClick={() => void carryOut(task, { status: "in_progress" }, { agent: chosen, feedback })}>
              Start with this agent
            </Button>
          )}
        </>
      }
    >
      {free.length > 0 ? (
        <Field label="Agent">
          <Select value={chosen} onChange={(event) => setAgent(event.target.value)} className="w-full">
            {free.map((each) => (
              <option key={each.id} value={each.id}>
                {each.name} ({each.adapter})
              </option>
            ))}
          </Select>
        </Field>
      ) : (
        <p className="text-muted">
          {agents.length > 0 ? (
            "The task can wait in its column. It starts by itself as soon as an agent is free."
          ) : (
            <Link to="/work" onClick={close} className="text-accent underline">
              Create an agent in Agent work
            </Link>
          )}
        </p>
      )}
    </Dialog>
  );
}

function FeedbackDialog({ task }: { task: Task }) {
  // What a reviewer wrote on GitHub is there already.
  const [text, setText] = useState(task.feedback);
  const { start } = useMove();
  const send = () => {
    if (!text.trim()) return;
    close();
    void start(task, text.trim());
  };
  return (
    <Dialog
      open
      onClose={close}
      title="What shall be different?"
      description={`${nameOf(task)} goes back to its agent, which works on the same branch and the same pull request.`}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button look="primary" disabled={!text.trim()} onClick={send}>
            Send back <KeyHint keys="Ctrl ↵" />
          </Button>
        </>
      }
    >
      <Field label="Feedback for the agent" hint="Needed: the agent gets it with the task.">
        <Textarea rows={6} maxLength={10_000} value={text} autoFocus required onChange={(event) => setText(event.target.value)} onKeyDown={onSend(send)} />
      </Field>
    </Dialog>
  );
}

export function MoveDialogs() {
  const question = useMoves((state) => state.question);
  const { carryOut } = useMove();
  if (!question) return null;
  const { task } = question;
  if (question.kind === "wip") return <WipDialog {...question} />;
  if (question.kind === "feedback") return <FeedbackDialog task={task} />;
  if (question.kind === "merge")
    return <MergeDialog task={task} onClose={close} onLeave={() => void carryOut(task, question.place)} onMerged={() => void carryOut(task, question.place)} />;
  return (
    <ConfirmDialog
      open
      onClose={close}
      onConfirm={() => void carryOut(task, question.place)}
      title={`Stop the work on ${nameOf(task)}?`}
      lost={`An agent works on it. Its work is called off when the task moves to ${titleOf(question.place.status)}; what is not pushed is lost.`}
      action="Stop and move"
    />
  );
}
