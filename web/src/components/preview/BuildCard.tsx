// The card of each state in which the page of a build cannot be framed: what is the matter, and what to do.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleX, ExternalLink, Hammer, Hourglass, LoaderCircle, Moon, Play, RotateCw, ScrollText, ShieldBan, TriangleAlert } from "lucide-react";
import { type ReactNode, useState } from "react";
import { api, data, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import { Button } from "@/ui/button";
import { Elapsed } from "@/ui/time";
import { blockedBy, type PreviewState } from "./machine";
import { RebuildButton } from "./Rebuild";
import { StateCard } from "./StateCard";

type Build = Schemas["Build"];

export function BuildCard({ build, state, reason, onResume, onRetry, checking }: {
  build: Build;
  state: PreviewState;
  reason?: string | null;
  onResume: () => void;
  onRetry: () => void;
  checking: boolean;
}): ReactNode {
  const retry = (
    <Button busy={checking} onClick={onRetry} icon={<RotateCw aria-hidden className="size-4" />}>
      Check again
    </Button>
  );
  const resume = (label: string) => (
    <Button look="primary" onClick={onResume} icon={<Play aria-hidden className="size-4" />}>
      {label}
    </Button>
  );
  switch (state) {
    case "checking":
      return <StateCard state={state} icon={LoaderCircle} spin title="Checking the preview" />;
    case "loading":
      return <Loading build={build} />;
    case "blocked":
      return <Blocked build={build} reason={reason} retry={retry} />;
    case "paused":
      return (
        <StateCard state={state} tone="warn" icon={Moon} title="The preview sleeps" actions={resume("Resume")}>
          Its files and packages are kept. Waking it takes some seconds.
        </StateCard>
      );
    case "resuming":
      return <Resuming />;
    case "resume_failed":
      return (
        <StateCard
          state={state}
          tone="bad"
          icon={TriangleAlert}
          title="The preview does not come back"
          actions={
            <>
              {resume("Try again")}
              <LogsLink id={build.id} />
            </>
          }
        >
          The sandbox was tried twice and does not answer.
        </StateCard>
      );
    case "expired":
      return (
        <StateCard
          state={state}
          icon={Hourglass}
          title="The preview is gone"
          actions={
            <>
              <RebuildButton build={build} />
              <LogsLink id={build.id} />
            </>
          }
        >
          {build.sandbox_expires_at
            ? "Its sandbox has ended. The files of this version are kept."
            : "A newer version took its place. The files of this one are kept."}
        </StateCard>
      );
    default:
      return (
        <StateCard
          state={state}
          tone="bad"
          icon={CircleX}
          title={build.state === "failed" ? "The build failed" : "The preview does not answer"}
          actions={
            <>
              {build.state === "failed" ? null : resume("Start it anew")}
              {build.state === "failed" ? null : retry}
              <LogsLink id={build.id} />
            </>
          }
        >
          {build.error_summary ?? "Its server has stopped, or answers with an error."}
        </StateCard>
      );
  }
}

const LogsLink = ({ id }: { id: string }) => (
  <Link
    to="/builds/$buildId"
    params={{ buildId: id }}
    search={{ tab: "logs" }}
    className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line bg-panel px-3 font-medium text-text hover:bg-hover"
  >
    <ScrollText aria-hidden className="size-4" /> View logs
  </Link>
);

function Loading({ build }: { build: Build }) {
  // Lines of a build's log are no events of the stream.
  const last = useQuery({
    queryKey: [...keys.build(build.id), "last-line"],
    queryFn: async () =>
      (await data(api.GET("/api/v1/builds/{id}/logs", { params: { path: { id: build.id }, query: { limit: 1 } } }))).lines?.at(-1)?.text ?? "",
    refetchInterval: 2000,
  }).data;
  const waits = build.state === "queued" || build.state === "scheduled";
  return (
    <StateCard
      state="loading"
      tone="info"
      icon={waits ? Hourglass : Hammer}
      title={
        <>
          {build.stage_label} <Elapsed from={build.started_at ?? build.enqueued_at} />
        </>
      }
    >
      {waits ? <p>The build waits for its turn{build.position > 0 ? `: it is number ${build.position}` : ""}.</p> : null}
      {last && <p className="mt-2 truncate rounded-md bg-panel px-3 py-1.5 text-left font-mono text-xs">{last}</p>}
    </StateCard>
  );
}

function Blocked({ build, reason, retry }: { build: Build; reason?: string | null; retry: ReactNode }) {
  return (
    <StateCard
      state="blocked"
      tone="warn"
      icon={ShieldBan}
      title="The page cannot be shown in a frame"
      actions={
        <>
          <a
            href={build.preview_url ?? undefined}
            target="_blank"
            rel="noreferrer"
            className="inline-flex h-8 items-center gap-1.5 rounded-md bg-accent px-3 font-medium text-accent-text"
          >
            <ExternalLink aria-hidden className="size-4" /> Open it
          </a>
          {retry}
        </>
      }
    >
      <p>It works, but {blockedBy(reason)}.</p>
      {build.snapshot_url && (
        <img
          src={`/api/v1/builds/${build.id}/screenshot`}
          alt={`Picture of ${build.project}`}
          className="mt-3 w-full rounded-md border border-line"
        />
      )}
    </StateCard>
  );
}

/** What is done, one after the other; how far it is the server does not tell. */
const STEPS = ["Connect to the sandbox", "Start the server", "Wait until it answers"];

function Resuming() {
  const [since] = useState(() => new Date().toISOString());
  return (
    <StateCard
      state="resuming"
      tone="info"
      icon={LoaderCircle}
      spin
      title={
        <>
          Waking the preview <Elapsed from={since} />
        </>
      }
    >
      <ol className="mx-auto w-fit list-inside list-decimal text-left">
        {STEPS.map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
    </StateCard>
  );
}
