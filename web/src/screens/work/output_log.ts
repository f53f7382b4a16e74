import type { EventLog } from "@/live/event_log";
import { useFold } from "./fold";
import { type Log, LogFolder } from "./log_lines";

/** Lines and groups of the output that is here. */
export function useOutputLog(log: EventLog): Log {
  const { from, until } = log.output;
  return useFold(log.events, () => new LogFolder(from, until), log.version);
}
