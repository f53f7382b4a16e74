import { useQuery } from "@tanstack/react-query";
import { GitCommitHorizontal } from "lucide-react";
import { useEventLog } from "@/live/event_log";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Ago, duration } from "@/ui/time";
import { useFold } from "../work/fold";
import { operationsQuery } from "../work/queries";
import { fromRow, type Operation, OperationFolder } from "./operations";
import type { Detail } from "./queries";
import { WideTable } from "./WideTable";

/** What was done with git in this sandbox, the newest first. */
export function OperationsTab({ box }: { box: Detail }) {
  return box.task_id ? <OfTask box={box} task={box.task_id} /> : <OfEvents id={box.id} />;
}

function OfTask({ box, task }: { box: Detail; task: string }) {
  const operations = useQuery(operationsQuery(task));
  if (operations.error) return <ErrorState error={operations.error} onRetry={() => void operations.refetch()} />;
  if (!operations.data) return <SkeletonRows />;
  return <Table operations={operations.data.filter((row) => row.sandbox_id === box.id).map(fromRow)} />;
}

function OfEvents({ id }: { id: string }) {
  const log = useEventLog({ sandbox_id: id });
  const operations = useFold(log.events, () => new OperationFolder());
  if (log.error) return <ErrorState error={log.error} onRetry={log.retry} />;
  return log.loading ? <SkeletonRows /> : <Table operations={operations} />;
}

function Table({ operations }: { operations: Operation[] }) {
  if (operations.length === 0)
    return (
      <EmptyState icon={GitCommitHorizontal} title="No operation yet">
        Clones, commits and pushes of this sandbox are listed here.
      </EmptyState>
    );
  return (
    <WideTable label="Operations of this sandbox" columns={["State", "Operation", "Exit code", "Took", "When"]}>
      {operations.toReversed().map((each) => (
        <tr key={each.id} className="border-t border-line align-top">
          <td className="px-2 py-1.5">
            <StatusBadge kind="step" state={each.state} />
          </td>
          <td className="max-w-xl px-2 py-1.5">
            <span className="font-medium">{each.name}</span>
            {each.command && <code className="block font-mono text-xs break-words text-muted">{each.command}</code>}
            {each.error && <span className="block text-[13px] break-words whitespace-pre-wrap text-bad">{each.error}</span>}
          </td>
          <td className="px-2 py-1.5 tabular-nums">{each.exitCode ?? <span className="text-muted">–</span>}</td>
          <td className="px-2 py-1.5 whitespace-nowrap tabular-nums">{each.ms === undefined ? <span className="text-muted">–</span> : duration(each.ms)}</td>
          <td className="px-2 py-1.5 text-muted">
            <Ago time={each.at} />
          </td>
        </tr>
      ))}
    </WideTable>
  );
}
