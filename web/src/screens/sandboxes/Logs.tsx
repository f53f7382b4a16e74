import { useEventLog } from "@/live/event_log";
import OutputLog from "../work/OutputLog";
import { useOutputLog } from "../work/output_log";

/** What programs of the platform printed in this sandbox: agents, commands, git. */
export default function Logs({ id }: { id: string }) {
  const log = useEventLog({ sandbox_id: id });
  return (
    <OutputLog
      owner={{ kind: "sandboxes", id }}
      label={`Log of sandbox ${id}`}
      log={log}
      {...useOutputLog(log)}
      empty="Nothing was printed here by an agent or a command of the API."
    />
  );
}
