import { useQuery } from "@tanstack/react-query";
import { Box } from "lucide-react";
import { json } from "@/api/client";
import { keys } from "@/api/queries";
import { Badge } from "@/ui/badge";
import { Tip } from "@/ui/tip";

export interface Usage {
  sandboxes: { running: number; limit: number; paused: number };
  agents: { busy: number; total: number };
  tasks: { in_progress: number; queued: number };
  approvals_waiting: number;
  cost_today_dollars: number;
  cost_month_dollars: number;
  budget_month_dollars: number;
}

export const usageQuery = { queryKey: keys.usage, queryFn: () => json<Usage>("/api/v1/usage") };

/** Running sandboxes, of how many. */
export function QuotaMeter() {
  const usage = useQuery({ ...usageQuery, retry: false }).data;
  if (!usage) return null;
  const { running, limit, paused } = usage.sandboxes;
  return (
    <Tip text={`${running} sandboxes run${limit ? ` of at most ${limit}` : ""}, ${paused} are paused`}>
      <span className="hidden md:inline-flex">
        <Badge icon={Box} tone={limit && running >= limit ? "warn" : "neutral"}>
          {running}
          {limit ? ` / ${limit}` : ""}
        </Badge>
      </span>
    </Tip>
  );
}
