import { ArrowDown, ArrowUp, X } from "lucide-react";
import { useState } from "react";
import { IconButton } from "@/ui/button";
import { Input } from "@/ui/field";

/** Finds a text in what the shell has printed. Enter: older; Shift+Enter: newer; Escape: done. */
export function FindBar({ onFind, onClose }: { onFind: (text: string, back?: boolean) => void; onClose: () => void }) {
  const [text, setText] = useState("");
  return (
    <search className="flex shrink-0 items-center gap-1 border-b border-line bg-panel px-2 py-1">
      <Input
        aria-label="Find in the terminal"
        placeholder="Find"
        autoFocus
        value={text}
        className="max-w-64"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onFind(text, !event.shiftKey);
          if (event.key === "Escape") onClose();
        }}
      />
      <IconButton label="Older match" small onClick={() => onFind(text, true)}>
        <ArrowUp aria-hidden className="size-4" />
      </IconButton>
      <IconButton label="Newer match" small onClick={() => onFind(text)}>
        <ArrowDown aria-hidden className="size-4" />
      </IconButton>
      <IconButton label="Close the search" small onClick={onClose}>
        <X aria-hidden className="size-4" />
      </IconButton>
    </search>
  );
}
