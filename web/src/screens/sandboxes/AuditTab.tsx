import { useQuery } from "@tanstack/react-query";
import { ScrollText } from "lucide-react";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Ago } from "@/ui/time";
import { WideTable } from "./WideTable";

/** Who changed something about this sandbox. For administrators. */
export function AuditTab({ id }: { id: string }) {
  const audit = useQuery({
    queryKey: [...keys.sandbox(id), "audit"],
    queryFn: async () => (await data(api.GET("/api/v1/audit", { params: { query: { target: id, limit: 100 } } }))).entries,
  });
  if (audit.error) return <ErrorState error={audit.error} onRetry={() => void audit.refetch()} />;
  if (!audit.data) return <SkeletonRows />;
  if (audit.data.length === 0) return <EmptyState icon={ScrollText} title="Nobody changed anything yet" />;
  return (
    <WideTable label="Audit log of this sandbox" columns={["When", "Who", "What", "Status", "From"]}>
      {audit.data.map((entry) => (
        <tr key={entry.id} className="border-t border-line">
          <td className="px-2 py-1.5 text-muted">
            <Ago time={entry.at} />
          </td>
          <td className="px-2 py-1.5">{entry.actor_id || "nobody known"}</td>
          <td className="px-2 py-1.5 font-mono text-[13px]">{entry.action}</td>
          <td className="px-2 py-1.5 tabular-nums">{entry.status}</td>
          <td className="px-2 py-1.5 text-muted">{entry.address}</td>
        </tr>
      ))}
    </WideTable>
  );
}
