import { ChevronRight } from "lucide-react";
import { Fragment, type ReactNode } from "react";
import type { Schemas } from "@/api/client";
import { useRows } from "@/shell/rows";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { CopyButton } from "@/ui/copy";
import { ago, exact } from "@/ui/time";

export type Entry = Schemas["AuditLog"]["entries"][number];
export type Filter = { actor?: string; target?: string };

const CELL = "px-3 py-1.5 text-left align-middle";
const FROM_SM = "max-sm:hidden";
const FROM_LG = "max-lg:hidden";
/** Those that a narrow screen has no room for are only on a wider one, and among the details. */
const COLUMNS = [["Time"], ["User", FROM_SM], ["Call"], ["About", FROM_LG], ["Result"], ["Address", FROM_LG], ["Request", FROM_LG]] as const;

/** Lines of the log; the one that is open tells everything. */
export function Entries({ entries, open, onOpen, onFilter }: {
  entries: Entry[];
  open: string | undefined;
  onOpen: (id: string | undefined) => void;
  onFilter: (filter: Filter) => void;
}) {
  useRows("Audit log", "entry");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label="Entries">
      <table className="w-full text-[13px]">
        <thead className="border-b border-line text-muted">
          <tr>
            {COLUMNS.map(([name, shown]) => (
              <th key={name} scope="col" className={cx(CELL, "font-medium", shown)}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {entries.map((entry) => {
            const id = String(entry.id);
            return (
              <Fragment key={id}>
                <Line entry={entry} open={open === id} onToggle={() => onOpen(open === id ? undefined : id)} />
                {open === id && (
                  <tr>
                    <td colSpan={COLUMNS.length} className="bg-sunken px-3 py-3">
                      <Details entry={entry} onFilter={onFilter} />
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Line({ entry, open, onToggle }: { entry: Entry; open: boolean; onToggle: () => void }) {
  return (
    <tr className="relative hover:bg-hover has-[[data-row]:focus-visible]:bg-hover">
      <td className={`${CELL} whitespace-nowrap text-muted`}>
        <time dateTime={entry.at} title={exact(entry.at)}>
          <span className="max-sm:hidden">{exact(entry.at)}</span>
          <span className="sm:hidden">{ago(entry.at, Date.now())}</span>
        </time>
      </td>
      <td className={cx(CELL, FROM_SM)}>{entry.actor_id}</td>
      <td className={cx(CELL, "max-sm:w-full max-sm:px-1")}>
        {/* The button covers its line. */}
        <button type="button" data-row={entry.id} aria-expanded={open} onClick={onToggle} className="dense flex items-start gap-1 text-left font-mono text-xs after:absolute after:inset-0 wrap-anywhere">
          <ChevronRight aria-hidden className={cx("size-4 shrink-0 text-muted transition-transform", open && "rotate-90")} />
          {entry.action}
        </button>
      </td>
      <td className={cx(CELL, FROM_LG, "max-w-72 truncate font-mono text-xs")} title={entry.target}>{entry.target}</td>
      <td className={CELL}>
        <Badge tone={entry.status < 400 ? "ok" : "bad"}>{entry.status}</Badge>
      </td>
      <td className={cx(CELL, FROM_LG, "text-muted")}>{entry.address}</td>
      <td className={cx(CELL, FROM_LG, "font-mono text-xs text-muted")}>{entry.request_id}</td>
    </tr>
  );
}

function Details({ entry, onFilter }: { entry: Entry; onFilter: (filter: Filter) => void }) {
  const facts: [string, string, ReactNode?][] = [
    ["Time", exact(entry.at)],
    ["User", entry.actor_id, <Only key="user" onClick={() => onFilter({ actor: entry.actor_id })} />],
    ["About", entry.target, <Only key="about" onClick={() => onFilter({ target: entry.target })} />],
    ["Address", entry.address],
    ["Request", entry.request_id, <CopyButton key="copy" text={entry.request_id} label="Copy the request's id" />],
  ];
  return (
    <dl className="grid grid-cols-[auto_1fr] items-center gap-x-4 gap-y-1">
      {facts
        .filter(([, value]) => value)
        .map(([name, value, action]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="flex min-h-7 min-w-0 flex-wrap items-center gap-x-2 break-all">
              {value} {action}
            </dd>
          </div>
        ))}
    </dl>
  );
}

const Only = ({ onClick }: { onClick: () => void }) => (
  <Button small look="ghost" onClick={onClick}>
    Only these
  </Button>
);
