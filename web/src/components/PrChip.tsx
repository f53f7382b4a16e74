import { StatusBadge } from "@/ui/status";
import { ForgeLink } from "./forge";

/** The pull request of a task, as a link where its address may be one. */
export function PrChip({ url, number, state }: { url: string; number: number; state: string }) {
  if (!number) return null;
  return (
    <ForgeLink url={url} className="inline-flex items-center" onClick={(event) => event.stopPropagation()}>
      <span className="inline-flex items-center gap-1">
        <span className="sr-only">Pull request</span> <StatusBadge kind="pull" state={state || "open"} />
        <span className="text-xs text-muted">#{number}</span>
      </span>
    </ForgeLink>
  );
}
