import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleAlert, CircleDot, ExternalLink, History, Plug } from "lucide-react";
import type { ReactNode } from "react";
import { portsQuery } from "@/components/preview/ports";
import { cx } from "@/ui/classes";
import { CopyButton } from "@/ui/copy";
import { bytes, MB, plural, repoName, safeLink } from "@/ui/format";
import { Card } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Ago, exact } from "@/ui/time";
import { hasEnded, ownMetadata } from "./boxes";
import { Owner } from "./Owner";
import { type Detail, LIST_MS, timelineQuery } from "./queries";

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="grid grid-cols-[8rem_1fr] gap-2 py-1">
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </div>
  );
}

function Facts({ box }: { box: Detail }) {
  const limits = box.limits;
  const metadata = Object.entries(ownMetadata(box.metadata));
  return (
    <Card title="About">
      <dl className="px-4 py-2">
        <Fact name="Template">{box.alias ?? box.templateID ?? "–"}</Fact>
        <Fact name="Owner">
          <Owner owner={{ kind: (box.holder_kind || "user") as "user", id: box.holder_id ?? "", agentId: box.agent_id ?? "" }} />
        </Fact>
        {box.repo_url && (
          <Fact name="Repository">
            {repoName(box.repo_url)}
            {box.branch_name && ` · ${box.branch_name}`}
          </Fact>
        )}
        {limits && (
          <Fact name="Machine">
            {plural(limits.cpuCount, "CPU")}, {bytes(limits.memoryMB * MB)} memory, {bytes(limits.diskSizeMB * MB)} disk, at most {limits.pids} processes
          </Fact>
        )}
        {box.allowInternetAccess !== undefined && <Fact name="Internet">{box.allowInternetAccess ? "Allowed" : "Closed"}</Fact>}
        <Fact name="Created">
          <Ago time={box.created_at} />
        </Fact>
        {box.last_used_at && (
          <Fact name="Last used">
            <Ago time={box.last_used_at} />
          </Fact>
        )}
        {box.status === "running" && box.endAt && <Fact name="Ends">{exact(box.endAt)}</Fact>}
        {box.last_checked_at && !hasEnded(box.status) && (
          <Fact name="Checked">
            <Ago time={box.last_checked_at} />: {box.backend_state === "unknown" ? "it does not answer" : box.backend_state}
          </Fact>
        )}
        {box.saved && (
          <Fact name="Put away">
            {box.saved.tier === "memory" && `with its memory (${bytes(box.saved.memoryBytes)}) and files (${bytes(box.saved.diskBytes)})`}
            {box.saved.tier === "files" && `only its files (${bytes(box.saved.diskBytes)}); processes start anew`}
            {box.saved.tier === "frozen" && `it stands still in memory${box.saved.whyFrozen ? `: ${box.saved.whyFrozen}` : ""}`}
          </Fact>
        )}
        {metadata.map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
    </Card>
  );
}

function Ports({ id }: { id: string }) {
  const ports = useQuery({ ...portsQuery(id), refetchInterval: LIST_MS });
  return (
    <Card title="Ports">
      {ports.error ? (
        <ErrorState error={ports.error} onRetry={() => void ports.refetch()} />
      ) : !ports.data ? (
        <SkeletonRows rows={2} />
      ) : ports.data.ports.length === 0 ? (
        <EmptyState icon={Plug} title="No open ports">
          A program that listens in the sandbox gets an address here.
        </EmptyState>
      ) : (
        <ul className="px-4 py-2">
          {ports.data.ports.map(({ port, url, process }) => (
            <li key={port} className="flex items-center gap-2 py-1">
              <span className="w-14 font-mono tabular-nums">{port}</span>
              {safeLink(url) ? (
                <a href={safeLink(url)} target="_blank" rel="noreferrer" className="inline-flex min-w-0 items-center gap-1 text-accent hover:underline">
                  <span className="truncate">{url}</span> <ExternalLink aria-hidden className="size-3.5 shrink-0" />
                </a>
              ) : (
                <span className="truncate">{url}</span>
              )}
              <CopyButton text={url} label={`Copy the address of port ${port}`} />
              <span className="ml-auto truncate text-muted">{process}</span>
              <Link to="/sandboxes/$sandboxId" params={{ sandboxId: id }} search={{ tab: "preview", port: String(port) } as never} className="shrink-0 text-accent hover:underline" aria-label={`Preview port ${port}`}>
                Preview
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Timeline({ id }: { id: string }) {
  const timeline = useQuery(timelineQuery(id));
  return (
    <Card title="Timeline" className="lg:row-span-2">
      {timeline.error ? (
        <ErrorState error={timeline.error} onRetry={() => void timeline.refetch()} />
      ) : !timeline.data ? (
        <SkeletonRows rows={3} />
      ) : timeline.data.length === 0 ? (
        <EmptyState icon={History} title="Nothing has happened yet" />
      ) : (
        <ol className="px-4 py-2">
          {timeline.data.toReversed().map((event) => {
            const bad = event.level === "error" || event.level === "warn" || event.level === "warning";
            const Icon = bad ? CircleAlert : CircleDot;
            return (
              <li key={event.id} className="flex gap-2.5 py-1.5">
                <Icon aria-label={bad ? "Problem" : undefined} aria-hidden={!bad} className={cx("mt-0.5 size-4 shrink-0", bad ? "text-bad" : "text-muted")} />
                <span className="min-w-0 flex-1 break-words">{event.message}</span>
                <span className="text-xs text-muted">
                  <Ago time={event.at} />
                </span>
              </li>
            );
          })}
        </ol>
      )}
    </Card>
  );
}

/** `narrow`: one column, for the panel beside the list. */
export function Overview({ box, narrow }: { box: Detail; narrow?: boolean }) {
  return (
    <div className={cx("grid items-start gap-4", !narrow && "p-4 lg:grid-cols-2")}>
      <Facts box={box} />
      <Timeline id={box.id} />
      {box.status === "running" && <Ports id={box.id} />}
    </div>
  );
}
