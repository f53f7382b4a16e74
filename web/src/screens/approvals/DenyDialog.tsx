import { useState } from "react";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Textarea } from "@/ui/field";
import { KeyHint } from "@/ui/kbd";

/** Why a question is answered with no. Without a reason there is no such answer. */
export function DenyDialog({ title, busy, onClose, onDeny }: { title: string; busy?: boolean; onClose: () => void; onDeny: (why: string) => void }) {
  const [why, setWhy] = useState("");
  const send = () => why.trim() && !busy && onDeny(why.trim());
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Deny: ${title}`}
      description="The work ends here and the task fails. The reason is kept with it."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" busy={busy} disabled={!why.trim()} onClick={send}>
            Deny <KeyHint keys="Ctrl ↵" />
          </Button>
        </>
      }
    >
      <Field label="Reason">
        <Textarea
          autoFocus
          required
          maxLength={10_000}
          value={why}
          onChange={(event) => setWhy(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && send()}
        />
      </Field>
    </Dialog>
  );
}
