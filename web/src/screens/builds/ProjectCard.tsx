import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ExternalLink, Play } from "lucide-react";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";
import { answers } from "@/components/preview/machine";
import { Badge } from "@/ui/badge";
import { Button, buttonClass } from "@/ui/button";
import { safeLink } from "@/ui/format";
import { Card } from "@/ui/page";
import { StatusBadge } from "@/ui/status";
import { Ago, Elapsed } from "@/ui/time";
import { failed } from "@/ui/toast";
import type { Build } from "./queries";
import { inWords } from "./stages";

const FIRST = 5;

/** A project with its newest builds, and the preview of the newest version. */
export function ProjectCard({ project, builds, folded, onProject }: {
  project: string;
  builds: Build[];
  folded: boolean;
  onProject: () => void;
}) {
  const shown = folded ? builds.slice(0, FIRST) : builds;
  const current = builds.find((build) => build.build_version && build.preview_state !== "expired") ?? builds.find((build) => build.build_version);
  return (
    <Card title={project} actions={current && <PreviewActions build={current} />}>
      <ul aria-label={`Builds of ${project}`}>
        {shown.map((build) => (
          <li key={build.id} className="relative flex min-h-10 items-center gap-3 border-b border-line px-4 py-1.5 last:border-0 focus-within:bg-hover hover:bg-hover">
            <span className="shrink-0 sm:w-28">
              <StatusBadge kind="build" state={build.state} />
            </span>
            <Link
              data-row={build.id}
              to="/builds/$buildId"
              params={{ buildId: build.id }}
              className="min-w-0 flex-1 truncate font-medium after:absolute after:inset-0"
            >
              {build.build_version ?? (build.state === "failed" ? "No version" : build.stage_label)}
              <span className="ml-2 font-normal text-muted">{build.error_summary ?? build.goal}</span>
            </Link>
            <span className="text-[13px] text-muted max-md:hidden">{build.runner}</span>
            <span className="w-20 text-right text-[13px] text-muted max-sm:hidden">
              {build.duration_seconds !== null ? inWords(build.duration_seconds) : build.started_at ? <Elapsed from={build.started_at} /> : ""}
            </span>
            <span className="w-24 text-right text-[13px] text-muted">
              <Ago time={build.enqueued_at} />
            </span>
          </li>
        ))}
      </ul>
      {builds.length > shown.length && (
        <Button look="ghost" small className="m-1" onClick={onProject}>
          All {builds.length} builds
        </Button>
      )}
    </Card>
  );
}

function PreviewActions({ build }: { build: Build }) {
  const queries = useQueryClient();
  const resume = useMutation({
    mutationFn: () => data(api.POST("/api/v1/builds/{id}/resume", { params: { path: { id: build.id } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.builds }),
    onError: (error) => failed(`The preview of ${build.project} does not come back`, error),
  });
  const link = safeLink(build.preview_url ?? "");
  return (
    <>
      <Badge>{build.build_version}</Badge>
      {(build.preview_state === "paused" || build.preview_state === "resume_failed") && (
        <Button small busy={resume.isPending} icon={<Play aria-hidden className="size-4" />} onClick={() => resume.mutate()}>
          Resume {build.project}
        </Button>
      )}
      {answers(build.preview_state) && link && (
        <a href={link} target="_blank" rel="noreferrer" className={buttonClass("plain", true)}>
          <ExternalLink aria-hidden className="size-4" /> Open {build.project}
        </a>
      )}
    </>
  );
}
