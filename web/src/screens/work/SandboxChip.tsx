import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Box } from "lucide-react";
import { lookOf } from "@/ui/status";
import { Badge } from "@/ui/badge";
import { duration, useNow } from "@/ui/time";
import { sandboxQuery } from "./queries";

/** The sandbox: its state, and how long it may live. */
export function SandboxChip({ id }: { id: string | null | undefined }) {
  const sandbox = useQuery(sandboxQuery(id)).data;
  const now = useNow(10_000);
  if (!id || !sandbox) return null;
  const look = lookOf("sandbox", sandbox.status);
  const left = sandbox.status === "running" && sandbox.ends_at ? Date.parse(sandbox.ends_at) - now : 0;
  return (
    <Link to="/sandboxes/$sandboxId" params={{ sandboxId: id }}>
      <Badge tone={look.tone} icon={Box}>
        Sandbox {look.label.toLowerCase()}
        {left > 0 && <span className="tabular-nums">· {duration(left).replace(/:\d\d$/, " min")} left</span>}
      </Badge>
    </Link>
  );
}

/** Whether something can be done in the sandbox now. */
export function useSandboxRuns(id: string | null | undefined): boolean {
  return useQuery(sandboxQuery(id)).data?.status === "running";
}
