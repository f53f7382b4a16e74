// One build: versions left, what it shows in the middle, what is known of it right.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { Suspense } from "react";
import { Preview } from "@/components/Preview";
import { buildQuery } from "@/components/preview/BuildPreview";
import { useShortcuts } from "@/shell/shortcuts";
import { lazily } from "@/ui/lazily";
import { useMedia } from "@/ui/media";
import { Page } from "@/ui/page";
import { useParam } from "@/ui/url";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Tabs } from "@/ui/tabs";
import { Elapsed } from "@/ui/time";
import { Actions } from "./Actions";
import { Facts } from "./Facts";
import { Notices } from "./Notices";
import { type Build as BuildData, buildEventsQuery, isOver } from "./queries";
import { Stages } from "./Stages";
import { inWords, stagesOf } from "./stages";
import { Versions } from "./Versions";

const BuildLogs = lazily(() => import("./BuildLogs"));
const Compare = lazily(() => import("./Compare"));

/** From here on versions and details stand beside the tabs. */
const THREE_PANELS = "(min-width: 1280px)";
const TABS = ["preview", "logs", "changes", "versions", "details"];

export default function Build() {
  const { buildId = "" } = useParams({ strict: false });
  const build = useQuery(buildQuery(buildId));
  if (build.isPending) return <SkeletonRows />;
  if (build.error) return <ErrorState screen error={build.error} onRetry={() => void build.refetch()} />;
  return <Shown key={buildId} build={build.data} />;
}

function Shown({ build }: { build: BuildData }) {
  const events = useQuery(buildEventsQuery(build.id)).data ?? [];
  const wide = useMedia(THREE_PANELS);
  const tabs = wide ? TABS.slice(0, 3) : TABS;
  const [chosen = "", setTab] = useParam("tab");
  const tab = tabs.includes(chosen) ? chosen : build.state === "failed" ? "logs" : "preview";
  const step = (by: number) => setTab(tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length]);
  useShortcuts([
    { keys: "[", label: "Previous tab", scope: "Build", run: () => step(-1) },
    { keys: "]", label: "Next tab", scope: "Build", run: () => step(1) },
  ]);
  const waiting = (content: React.ReactNode) => <Suspense fallback={<SkeletonRows />}>{content}</Suspense>;
  const views = [
    { id: "preview", label: "Preview", content: <Preview source={{ kind: "build", id: build.id }} /> },
    { id: "logs", label: "Logs", content: waiting(<BuildLogs build={build} />) },
    { id: "changes", label: "Changes", content: waiting(<Compare build={build} />) },
    ...(wide
      ? []
      : [
          { id: "versions", label: "Versions", content: <Versions build={build} /> },
          { id: "details", label: "Details", content: <Facts build={build} /> },
        ]),
  ];
  return (
    <Page fill title={[build.project, build.build_version].filter(Boolean).join(" ")} actions={<Actions build={build} />}>
      <div className="flex h-full min-h-0 flex-col">
        <div className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 pb-3 text-muted">
          <StatusBadge kind="build" state={build.state} />
          <span>
            {build.state === "ready" && build.duration_seconds !== null
              ? `Built in ${inWords(build.duration_seconds)}`
              : isOver(build)
                ? build.stage_label
                : null}
            {!isOver(build) && (
              <>
                {build.stage_label} <Elapsed from={build.started_at ?? build.enqueued_at} />
              </>
            )}
          </span>
          {build.state === "queued" && build.position > 0 && (
            <span>
              Number {build.position} in the queue, about {inWords(build.estimated_wait_s)}
            </span>
          )}
        </div>
        <Stages stages={stagesOf(build, events)} />
        <Notices build={build} events={events} />
        <div className="flex min-h-0 flex-1 border-t border-line bg-panel">
          {wide && (
            <aside aria-label="Versions" className="w-[280px] shrink-0 overflow-y-auto border-r border-line">
              <Versions build={build} />
            </aside>
          )}
          <div className="min-w-0 flex-1">
            <Tabs fill label="Build" tabs={views} value={tab} onChange={setTab} />
          </div>
          {wide && (
            <aside aria-label="Details" className="w-[320px] shrink-0 overflow-y-auto border-l border-line">
              <Facts build={build} />
            </aside>
          )}
        </div>
      </div>
    </Page>
  );
}
