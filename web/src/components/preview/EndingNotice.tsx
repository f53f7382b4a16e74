import { Clock, X } from "lucide-react";
import { useState } from "react";
import { Button, IconButton } from "@/ui/button";
import { duration, useNow } from "@/ui/time";

const WARN_MS = 5 * 60_000;

/** Once for each end: it will sleep soon, unless somebody wants it longer. */
export function EndingNotice({ endsAt, onKeep }: { endsAt: string | null; onKeep: () => void }) {
  const now = useNow(1000);
  const [dismissed, setDismissed] = useState("");
  if (!endsAt || dismissed === endsAt) return null;
  const left = Date.parse(endsAt) - now;
  if (left <= 0 || left > WARN_MS) return null;
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line bg-warn-soft px-3 py-1.5 text-warn">
      <Clock aria-hidden className="size-4" />
      <span role="status" aria-label="Time left">
        The preview goes to sleep in <span className="tabular-nums">{duration(left)}</span>
      </span>
      <span className="ml-auto flex items-center gap-1">
        <Button small onClick={onKeep}>
          Keep 30 min more
        </Button>
        <IconButton label="Dismiss" small onClick={() => setDismissed(endsAt)}>
          <X aria-hidden className="size-4" />
        </IconButton>
      </span>
    </div>
  );
}
