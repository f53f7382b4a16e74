import { RotateCw } from "lucide-react";
import { stepLabel } from "@/components/Stepper";
import { Button } from "@/ui/button";
import { StatusBadge } from "@/ui/status";
import { Elapsed, exact } from "@/ui/time";
import type { Step } from "./timeline";

/** Everything that is known of one step. */
export function StepDetail({ step, onRetry }: { step: Step; onRetry?: () => void }) {
  const result = JSON.stringify(step.result ?? {}, null, 2);
  const facts: [string, React.ReactNode][] = [
    ["State", <StatusBadge key="state" kind="step" state={step.state} />],
    ["Attempt", `${step.attempt} of at most ${step.max_attempts}`],
    ["Began", step.started_at ? exact(step.started_at) : "Not yet"],
    ["Took", step.started_at ? <Elapsed key="took" from={step.started_at} until={step.finished_at} /> : ""],
    ...(step.wait_key ? [["Waits for", <code key="wait">{step.wait_key}</code>] as [string, React.ReactNode]] : []),
    ...(step.wait_until ? [["At most until", exact(step.wait_until)] as [string, string]] : []),
    ...(step.next_attempt_at && step.state === "ready" ? [["Again at", exact(step.next_attempt_at)] as [string, string]] : []),
  ];
  return (
    <div className="p-4">
      <dl className="grid grid-cols-[7rem_1fr] gap-x-3 gap-y-1.5">
        {facts.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {step.error && <pre className="mt-3 rounded-md bg-bad-soft p-3 font-mono text-xs whitespace-pre-wrap text-bad">{step.error}</pre>}
      {result !== "{}" && (
        <pre tabIndex={0} aria-label={`Result of ${step.name}`} className="mt-3 max-h-72 overflow-auto rounded-md bg-sunken p-3 font-mono text-xs">
          {result}
        </pre>
      )}
      {onRetry && (
        <Button className="mt-3" onClick={onRetry} icon={<RotateCw aria-hidden className="size-4" />}>
          Retry from {stepLabel(step.name)}
        </Button>
      )}
    </div>
  );
}
