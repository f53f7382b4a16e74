import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Maximize2 } from "lucide-react";
import { Sheet } from "@/ui/dialog";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Actions } from "./Actions";
import { Overview } from "./Overview";
import { detailQuery } from "./queries";
import { TimeLeft } from "./TimeLeft";

/** A sandbox beside the list: what it is, and what can be done with it. */
export function SandboxPanel({ id, onClose }: { id: string; onClose: () => void }) {
  const box = useQuery(detailQuery(id));
  return (
    <Sheet
      open
      onClose={onClose}
      title={<span className="font-mono break-all">{id}</span>}
      footer={
        <>
          <Link
            to="/sandboxes/$sandboxId"
            params={{ sandboxId: id }}
            className="mr-auto inline-flex h-8 items-center gap-1.5 rounded-md border border-line px-3 font-medium hover:bg-hover"
          >
            <Maximize2 aria-hidden className="size-4" /> Open
          </Link>
          {box.data && <Actions box={box.data} />}
        </>
      }
    >
      {box.error ? (
        <ErrorState error={box.error} onRetry={() => void box.refetch()} />
      ) : !box.data ? (
        <SkeletonRows />
      ) : (
        <>
          <p className="mb-3 flex items-center gap-3">
            <StatusBadge kind="sandbox" state={box.data.status} />
            {box.data.status === "running" && box.data.endAt && (
              <span className="text-muted">
                <TimeLeft endAt={box.data.endAt} /> left
              </span>
            )}
          </p>
          <Overview box={box.data} narrow />
        </>
      )}
    </Sheet>
  );
}
