import { CircleAlert, CircleStop, LoaderCircle, RefreshCw } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "@/ui/button";
import { useNow } from "@/ui/time";
import type { ShellState } from "./connection";

function Line({ icon, children, actions }: { icon: ReactNode; children: ReactNode; actions?: ReactNode }) {
  return (
    <div role="status" className="flex shrink-0 flex-wrap items-center gap-2 border-t border-line bg-panel px-3 py-1.5">
      {icon}
      <span className="min-w-0 flex-1">{children}</span>
      {actions}
    </div>
  );
}

function Countdown({ until }: { until: number }) {
  return <>{Math.max(0, Math.ceil((until - useNow()) / 1000))} s</>;
}

/** What is to be known about a shell that does not answer. The screen above it stays as it was. */
export function ShellNotice({ state, onRetry, onNew, onRemove }: {
  state: ShellState;
  onRetry: () => void;
  onNew: () => void;
  onRemove: () => void;
}) {
  switch (state.state) {
    case "ready":
      return null;
    case "connecting":
      return <Line icon={<LoaderCircle aria-hidden className="size-4 animate-spin text-info" />}>Connecting</Line>;
    case "waiting":
      return (
        <Line
          icon={<RefreshCw aria-hidden className="size-4 text-warn" />}
          actions={
            <Button small onClick={onRetry}>
              Try now
            </Button>
          }
        >
          The connection was lost. The shell goes on; trying again in <Countdown until={state.until} />.
        </Line>
      );
    default:
      return (
        <Line
          icon={
            state.state === "ended" ? (
              <CircleStop aria-hidden className="size-4 text-muted" />
            ) : (
              <CircleAlert aria-hidden className="size-4 text-bad" />
            )
          }
          actions={
            <>
              <Button small onClick={onNew}>
                New shell
              </Button>
              <Button small look="ghost" onClick={onRemove}>
                Close
              </Button>
            </>
          }
        >
          {state.reason}
        </Line>
      );
  }
}
