import { SendHorizontal } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Button } from "@/ui/button";
import { Kbd } from "@/ui/kbd";

/** A text for an agent. Ctrl+Enter sends it; it stays if it could not be sent. */
export function MessageBox({ label, placeholder, action, busy, onSend, children }: {
  label: string;
  placeholder: string;
  action: string;
  busy: boolean;
  onSend: (text: string) => Promise<unknown>;
  /** More controls, at the left. */
  children?: ReactNode;
}) {
  const [text, setText] = useState("");
  const ready = text.trim().length > 0 && !busy;
  const send = () => {
    if (!ready) return;
    onSend(text.trim()).then(
      () => setText(""),
      () => undefined,
    );
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      className="m-3 shrink-0 rounded-lg border border-line-strong/60 bg-panel focus-within:border-accent"
    >
      <textarea
        aria-label={label}
        placeholder={placeholder}
        value={text}
        rows={Math.min(8, Math.max(2, text.split("\n").length))}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          send();
        }}
        className="block w-full resize-none bg-transparent px-3 py-2 outline-none"
      />
      <div className="flex flex-wrap items-center gap-2 px-2 pb-2">
        {children}
        <span className="ml-auto hidden sm:inline">
          <Kbd keys="Ctrl Enter" />
        </span>
        <Button small type="submit" look="primary" busy={busy} disabled={!ready} icon={<SendHorizontal aria-hidden className="size-4" />} className="max-sm:ml-auto">
          {action}
        </Button>
      </div>
    </form>
  );
}
