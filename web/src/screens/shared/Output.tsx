import { LogViewer } from "@/components/LogViewer";
import type { LiveEvent } from "@/live/stream";
import { useFold } from "../work/fold";
import { LogFolder } from "../work/log_lines";

/** What the task's commands printed, by step. */
export default function Output({ label, events }: { label: string; events: LiveEvent[] }) {
  const { lines, groups } = useFold(events, () => new LogFolder());
  return <LogViewer label={label} lines={lines} groups={groups} />;
}
