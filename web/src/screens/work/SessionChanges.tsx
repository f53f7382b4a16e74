import { useQuery } from "@tanstack/react-query";
import { FileDiff } from "lucide-react";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { DiffView } from "./tabs";

/** What stands uncommitted in the checkout of a session. */
export function SessionChanges({ sandboxId }: { sandboxId: string }) {
  const diff = useQuery({
    queryKey: [...keys.sandbox(sandboxId), "diff"],
    queryFn: async () => (await data(api.GET("/api/v1/sandboxes/{id}/git/diff", { params: { path: { id: sandboxId } } }))) as { diff: string },
    staleTime: 0,
    retry: false,
  });
  if (diff.error) return <ErrorState error={diff.error} onRetry={() => void diff.refetch()} title="The changes could not be read" />;
  if (diff.isPending) return <SkeletonRows />;
  if (!diff.data.diff) return <EmptyState icon={FileDiff} title="No changes that are not committed" />;
  return <DiffView patch={diff.data.diff} label="Changes of this session" />;
}
