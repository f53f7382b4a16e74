// What happens with the comments of a review: the agent gets them, or the pull request.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Bot, GitPullRequest, MessageSquare, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, data, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { Button } from "@/ui/button";
import { ConfirmDialog, Dialog } from "@/ui/dialog";
import { Field, Select, Textarea } from "@/ui/field";
import { plural, repoName } from "@/ui/format";
import { done, failed } from "@/ui/toast";
import { clearDrafts, type Draft, feedbackOf } from "./review";

const MAX_FEEDBACK = 10_000;
type Verdict = Schemas["NewReview"]["event"];

export function ReviewBar({ reviewId, drafts, task }: { reviewId: string; drafts: Draft[]; task: Schemas["Task"] }) {
  const [dialog, setDialog] = useState<"agent" | "pull" | "discard" | null>(null);
  const busy = task.status === "in_progress";
  const pull = task.pull_request_number > 0 && !["merged", "closed"].includes(task.pull_request_state);
  if (drafts.length === 0) return null;
  const close = () => setDialog(null);
  return (
    <section aria-label="Review" className="flex shrink-0 flex-wrap items-center gap-2 border-t border-line bg-panel px-3 py-2">
      <span className="inline-flex items-center gap-1.5 font-medium">
        <MessageSquare aria-hidden className="size-4 text-info" />
        {plural(drafts.length, "comment")} not sent
      </span>
      <span className="ml-auto flex flex-wrap gap-2">
        <Button look="ghost" small icon={<Trash2 aria-hidden className="size-4" />} onClick={() => setDialog("discard")}>
          Discard
        </Button>
        {pull && (
          <Button small icon={<GitPullRequest aria-hidden className="size-4" />} onClick={() => setDialog("pull")}>
            Post to pull request
          </Button>
        )}
        <Button
          small
          look="primary"
          disabled={busy}
          title={busy ? "The agent is at work. Send it when it has ended." : undefined}
          icon={<Bot aria-hidden className="size-4" />}
          onClick={() => setDialog("agent")}
        >
          Send to agent
        </Button>
      </span>
      {dialog === "agent" && <SendToAgent reviewId={reviewId} drafts={drafts} task={task} onClose={close} />}
      {dialog === "pull" && <PostToPull reviewId={reviewId} drafts={drafts} task={task} onClose={close} />}
      <ConfirmDialog
        open={dialog === "discard"}
        onClose={close}
        onConfirm={() => {
          clearDrafts(reviewId);
          close();
        }}
        title="Discard the review"
        lost={`${plural(drafts.length, "comment")} on #${task.number} ${task.title} will be lost.`}
        action="Discard"
      />
    </section>
  );
}

interface DialogProps {
  reviewId: string;
  drafts: Draft[];
  task: Schemas["Task"];
  onClose: () => void;
}

function SendToAgent({ reviewId, drafts, task, onClose }: DialogProps) {
  const queries = useQueryClient();
  const [summary, setSummary] = useState("");
  const feedback = feedbackOf(summary, drafts);
  const send = useMutation({
    mutationFn: () =>
      data(api.POST("/api/v1/tasks/{id}/move", { params: { path: { id: task.id } }, body: { status: "in_progress", feedback } })),
    onSuccess: () => {
      clearDrafts(reviewId);
      onClose();
      done("The agent works on it again");
      void queries.invalidateQueries({ queryKey: keys.task(task.id) });
      void queries.invalidateQueries({ queryKey: keys.board });
    },
    onError: (error) => failed("The review was not sent", error),
  });
  const long = feedback.length > MAX_FEEDBACK;
  return (
    <Dialog
      open
      onClose={onClose}
      title="Send the review to the agent"
      description={`#${task.number} goes back to In progress. The agent gets this text and works on the same branch.`}
      wide
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" busy={send.isPending} disabled={long} onClick={() => send.mutate()}>
            Send
          </Button>
        </>
      }
    >
      <Field label="In general" hint="May be empty.">
        <Textarea rows={2} value={summary} onChange={(event) => setSummary(event.target.value)} autoFocus />
      </Field>
      <p className="mb-1 text-[13px] font-medium">What the agent gets</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys */}
      <pre tabIndex={0} className="max-h-72 overflow-auto rounded-md bg-sunken p-3 font-mono text-xs whitespace-pre-wrap">
        {feedback}
      </pre>
      {long && <p className="mt-1 text-xs text-bad">At most {MAX_FEEDBACK.toLocaleString("en")} characters can be sent.</p>}
    </Dialog>
  );
}

function PostToPull({ reviewId, drafts, task, onClose }: DialogProps) {
  const queries = useQueryClient();
  const [body, setBody] = useState("");
  const [event, setEvent] = useState<Verdict>("comment");
  const post = useMutation({
    mutationFn: () =>
      data(
        api.POST("/api/v1/github/pull-requests/{number}/reviews", {
          params: { path: { number: String(task.pull_request_number) } },
          body: {
            repo: repoName(task.repo_url),
            event,
            body: body.trim(),
            comments: drafts.map(({ path, line, side, text }) => ({ path, line, side, body: text })),
          },
        }),
      ),
    onSuccess: () => {
      clearDrafts(reviewId);
      onClose();
      done(`The review is at pull request #${task.pull_request_number}`);
      void queries.invalidateQueries({ queryKey: keys.task(task.id) });
    },
    onError: (error) => failed("The review was not posted", error),
  });
  const needed = event !== "approve" && !body.trim();
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Post to pull request #${task.pull_request_number}`}
      description={`${plural(drafts.length, "comment")} at lines of ${repoName(task.repo_url)}, as one review.`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" busy={post.isPending} disabled={needed} onClick={() => post.mutate()}>
            Post
          </Button>
        </>
      }
    >
      <Field label="Decision">
        <Select value={event} onChange={(change) => setEvent(change.target.value as Verdict)}>
          <option value="comment">Comment</option>
          <option value="request_changes">Request changes</option>
          <option value="approve">Approve</option>
        </Select>
      </Field>
      <Field label="In general" hint={event === "approve" ? "May be empty." : "GitHub needs a sentence here."}>
        <Textarea value={body} onChange={(change) => setBody(change.target.value)} autoFocus />
      </Field>
    </Dialog>
  );
}
