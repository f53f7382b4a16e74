// The log of a task, a session or a sandbox: of what was printed a part is here, the server has the rest.
import { useCallback, useRef } from "react";
import { type OutputHit, type OutputOwner, outputAddress, searchOutput } from "@/api/output";
import { eventOf, idOf } from "@/components/log/places";
import { type Beyond, type LogGroup, type LogLine, LogViewer } from "@/components/LogViewer";
import type { EventLog } from "@/live/event_log";

/** The server finds what was printed; what the platform said itself is all here. */
function useSearch({ kind, id }: OutputOwner, notes: LogLine[]): Beyond["search"] {
  const latest = useRef(notes);
  latest.current = notes;
  return useCallback(
    async (text, stream, tell, signal) => {
      const needle = text.toLowerCase();
      const own = latest.current.filter((line) => (stream === "all" || line.stream === stream) && line.text.toLowerCase().includes(needle)).map((line) => line.id);
      tell(own);
      if (stream === "system") return false;
      const show = (hits: OutputHit[]) => tell([...own, ...hits.map((hit) => idOf(hit.event_id, hit.line))].sort((a, b) => a - b));
      return searchOutput({ kind, id }, text, stream === "all" ? undefined : stream, show, signal);
    },
    [kind, id],
  );
}

function useBeyond(owner: OutputOwner, { output, version }: EventLog, notes: LogLine[]): Beyond {
  const search = useSearch(owner, notes);
  return {
    from: idOf(output.from, 0),
    until: output.until === Number.POSITIVE_INFINITY ? output.until : idOf(output.until + 1, 0) - 1,
    busy: output.busy,
    version,
    earlier: output.earlier,
    later: output.later,
    around: (place) => output.around(eventOf(place)),
    latest: output.latest,
    search,
    fullText: outputAddress(owner),
  };
}

interface Props {
  owner: OutputOwner;
  label: string;
  log: EventLog;
  lines: LogLine[];
  notes: LogLine[];
  groups: LogGroup[];
  empty?: string;
}

export default function OutputLog({ owner, log, notes, ...rest }: Props) {
  return <LogViewer {...rest} loading={log.loading} error={log.error} onRetry={log.retry} beyond={useBeyond(owner, log, notes)} />;
}
