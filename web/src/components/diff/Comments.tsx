// What stands below a line of a diff: comments of this review, of GitHub, and the form for a new one.
import { MessageSquare, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { Badge } from "@/ui/badge";
import { Button, IconButton } from "@/ui/button";
import { Textarea } from "@/ui/field";
import { Ago } from "@/ui/time";
import { useForgeLink } from "../forge";
import { type Draft, editDraft, type Remark, removeDraft } from "./review";

const BOX = "mx-3 my-2 max-w-3xl rounded-lg border border-line bg-panel text-[13px]";

export function CommentForm({ label, initial = "", onSave, onClose }: {
  label: string;
  initial?: string;
  onSave: (text: string) => void;
  onClose: () => void;
}) {
  const [text, setText] = useState(initial);
  const save = () => text.trim() && onSave(text.trim());
  return (
    <form
      className={`${BOX} p-3`}
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Textarea
        aria-label={label}
        autoFocus
        rows={3}
        value={text}
        placeholder="What should be different here"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
          if (event.key === "Escape") {
            event.stopPropagation();
            onClose();
          }
        }}
      />
      <div className="mt-2 flex justify-end gap-2">
        <Button small onClick={onClose}>
          Cancel
        </Button>
        <Button small look="primary" type="submit" disabled={!text.trim()}>
          Add to the review
        </Button>
      </div>
    </form>
  );
}

export function DraftCard({ review, draft }: { review: string; draft: Draft }) {
  const [editing, setEditing] = useState(false);
  const where = `${draft.path}:${draft.line}`;
  if (editing)
    return (
      <CommentForm
        label={`Comment on ${where}`}
        initial={draft.text}
        onSave={(text) => {
          editDraft(review, draft.id, text);
          setEditing(false);
        }}
        onClose={() => setEditing(false)}
      />
    );
  return (
    <div className={`${BOX} border-info/40`}>
      <div className="flex items-center gap-2 px-3 pt-1">
        <Badge tone="info" icon={MessageSquare}>
          Not sent yet
        </Badge>
        <span className="ml-auto">
          <IconButton label={`Edit the comment on ${where}`} small onClick={() => setEditing(true)}>
            <Pencil aria-hidden className="size-3.5" />
          </IconButton>
          <IconButton label={`Remove the comment on ${where}`} small onClick={() => removeDraft(review, draft.id)}>
            <Trash2 aria-hidden className="size-3.5" />
          </IconButton>
        </span>
      </div>
      <p className="px-3 pb-2 whitespace-pre-wrap">{draft.text}</p>
    </div>
  );
}

export function RemarkCard({ remark }: { remark: Remark }) {
  const link = useForgeLink()(remark.url);
  return (
    <article className={BOX} aria-label={`Comment by ${remark.author}`}>
      <header className="flex items-center gap-2 px-3 pt-2 text-muted">
        <span className="font-medium text-text">{remark.author}</span>
        <Ago time={remark.createdAt} />
        {link && (
          <a href={link} target="_blank" rel="noreferrer" className="ml-auto underline">
            On GitHub
          </a>
        )}
      </header>
      <p className="px-3 pt-1 pb-2 whitespace-pre-wrap">{remark.body}</p>
    </article>
  );
}
