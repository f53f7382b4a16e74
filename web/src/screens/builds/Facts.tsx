import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { answers } from "@/components/preview/machine";
import { Ago, exact } from "@/ui/time";
import { Readiness } from "./Readiness";
import { type Build, isOver } from "./queries";
import { inWords } from "./stages";

/** Everything else that is known of a build. */
export function Facts({ build }: { build: Build }) {
  const left = build.usage?.jobs_remaining;
  const facts: [string, ReactNode][] = [
    ["Written by", build.runner],
    ["Framework", build.framework],
    ["Starts with", build.start_command && <code className="text-xs break-all">{build.start_command}</code>],
    ["Created", <Ago key="asked" time={build.enqueued_at} />],
    ["Took", build.duration_seconds === null ? "" : inWords(build.duration_seconds)],
    ["Preview until", build.sandbox_expires_at && answers(build.preview_state) ? exact(build.sandbox_expires_at) : ""],
    ["Builds left today", left == null ? "" : String(left)],
    [
      "Sandbox",
      build.sandbox_id && (
        <Link key="sandbox" to="/sandboxes/$sandboxId" params={{ sandboxId: build.sandbox_id }} className="text-accent hover:underline">
          {build.sandbox_id.slice(0, 10)}…
        </Link>
      ),
    ],
    [
      "Run",
      build.run_id && (
        <Link key="run" to="/runs/$runId" params={{ runId: build.run_id }} className="text-accent hover:underline">
          Steps and retries
        </Link>
      ),
    ],
  ];
  return (
    <div className="p-4">
      {build.goal && <p className="mb-3 whitespace-pre-wrap">{build.goal}</p>}
      <h2 className="mb-2 text-xs font-semibold text-muted">Details</h2>
      <dl className="grid grid-cols-[7.5rem_1fr] gap-x-3 gap-y-1.5 text-[13px]">
        {facts
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className="min-w-0">{value}</dd>
            </div>
          ))}
      </dl>
      {isOver(build) && (
        <>
          <h2 className="mt-5 mb-2 text-xs font-semibold text-muted">Deployment</h2>
          <Readiness build={build} />
        </>
      )}
    </div>
  );
}
