import { useMemo } from "react";
import { LogViewer } from "@/components/LogViewer";
import { logOf, useBuildLog } from "./build_log";
import type { Build } from "./queries";

export default function BuildLogs({ build }: { build: Build }) {
  const log = useBuildLog(build.id);
  const { lines, groups } = useMemo(() => logOf(build, log.lines), [build, log.lines]);
  return (
    <LogViewer
      label={`Log of ${build.project}`}
      lines={lines}
      groups={groups}
      loading={log.loading}
      error={log.error}
      onRetry={log.retry}
      empty={build.state === "queued" || build.state === "scheduled" ? "The build waits for its turn." : "The build has said nothing."}
    />
  );
}
