import { useQuery } from "@tanstack/react-query";
import { Archive, Box } from "lucide-react";
import type { ReactNode } from "react";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { exact } from "@/ui/time";
import { sandboxQuery } from "./queries";

/** Why there is nothing to show that needs a running sandbox. `kept`: where the work is instead. */
export function NoSandbox({ id, kept, action }: { id: string | null | undefined; kept?: string; action?: ReactNode }) {
  const query = useQuery(sandboxQuery(id));
  if (!id) return <EmptyState icon={Box} title="There is no sandbox yet" action={action} />;
  const sandbox = query.data;
  if (!sandbox) return query.isError ? <ErrorState error={query.error} onRetry={() => void query.refetch()} title="The sandbox could not be looked up" /> : <SkeletonRows rows={3} />;
  if (sandbox.status === "paused")
    return (
      <EmptyState icon={Box} title="The sandbox sleeps" action={action}>
        Its files and programs are kept.
      </EmptyState>
    );
  if (sandbox.status !== "terminated" && sandbox.status !== "terminating")
    return <EmptyState icon={Box} title={sandbox.status === "error" ? "The sandbox has failed" : "The sandbox is starting"}>{sandbox.last_error}</EmptyState>;
  return (
    <EmptyState icon={Archive} title={`The sandbox ended${sandbox.destroyed_at ? ` at ${exact(sandbox.destroyed_at)}` : ""}`} action={action}>
      {kept}
    </EmptyState>
  );
}
