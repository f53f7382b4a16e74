import { CircleAlert, RotateCw } from "lucide-react";
import { stepLabel } from "@/components/Stepper";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { CopyButton } from "@/ui/copy";
import { plural } from "@/ui/format";
import { meaningOf, type Run } from "./timeline";

/** What failed, in which step, how often it was tried, and what can be done. */
export function FailureCard({ run, onRetry, busy }: { run: Run; onRetry?: () => void; busy: boolean }) {
  const step = run.steps?.find((each) => each.error && (each.state === "failed" || each.state === "waiting" || each.state === "ready"));
  const error = run.error || step?.error;
  if (!error) return null;
  const errorClass = run.error_class || step?.error_class || "";
  const fatal = errorClass === "fatal";
  const waits = run.state === "waiting" || run.state === "running" || run.state === "queued";
  return (
    <section
      aria-label="Failure"
      className={cx("mx-4 mb-3 flex flex-wrap items-start gap-3 rounded-lg p-3", waits ? "bg-warn-soft text-warn" : "bg-bad-soft text-bad")}
    >
      <CircleAlert aria-hidden className="mt-0.5 size-5 shrink-0" />
      <div className="min-w-0 flex-1 basis-60">
        <p className="font-semibold">
          {step ? `${stepLabel(step.name)} ${waits ? "has a problem" : "failed"}` : "The run failed"}
          {step && step.attempt > 1 ? ` after ${plural(step.attempt, "attempt")}` : ""}
        </p>
        <pre className="mt-1 max-h-40 overflow-auto font-mono text-xs whitespace-pre-wrap" tabIndex={0}>
          {error}
        </pre>
        <p className="mt-1 text-[13px]">{meaningOf(errorClass)}</p>
      </div>
      <span className="flex items-center gap-1">
        <CopyButton text={error} label="Copy the error" />
        {onRetry && (
          <Button small look={fatal ? "plain" : "primary"} busy={busy} title="Goes on where it stopped" onClick={onRetry} icon={<RotateCw aria-hidden className="size-4" />}>
            Retry
          </Button>
        )}
      </span>
    </section>
  );
}
