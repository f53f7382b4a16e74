import { Link } from "@tanstack/react-router";
import { Ellipsis, Pause, Play, SquareTerminal, Trash2 } from "lucide-react";
import type { SandboxMetric } from "@/api/e2b";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/classes";
import { CopyButton } from "@/ui/copy";
import { Tick } from "@/ui/field";
import { bytes, repoName } from "@/ui/format";
import { Menu, type MenuItem } from "@/ui/menu";
import { Meter } from "@/ui/meter";
import { StatusBadge } from "@/ui/status";
import { Ago } from "@/ui/time";
import { type Box, hasEnded, isChanging } from "./boxes";
import { Owner } from "./Owner";
import type { Action } from "./queries";
import { TimeLeft } from "./TimeLeft";

const CELL = "px-2 py-1.5 align-middle";

function Use({ metric }: { metric: SandboxMetric | undefined }) {
  const cells = metric
    ? [
        <Meter key="cpu" label="CPU" used={metric.cpuUsedPct} total={100} text={`${Math.round(metric.cpuUsedPct)} %`} />,
        <Meter key="memory" label="Memory" used={metric.memUsed} total={metric.memTotal} text={bytes(metric.memUsed)} />,
        <Meter key="disk" label="Disk" used={metric.diskUsed} total={metric.diskTotal} text={bytes(metric.diskUsed)} />,
      ]
    : [null, null, null];
  return cells.map((cell, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: three columns
    <td key={index} className={cx(CELL, "hidden lg:table-cell")}>
      {cell ?? <span className="text-muted">–</span>}
    </td>
  ));
}

function actionsOf(box: Box, act: (action: Action) => void, openTerminal: () => void): (MenuItem | null)[] {
  const icon = "size-4";
  const items: (MenuItem | null)[] = [];
  if (box.status === "running")
    items.push(
      { label: "Terminal", icon: <SquareTerminal aria-hidden className={icon} />, onSelect: openTerminal },
      { label: "Pause", icon: <Pause aria-hidden className={icon} />, onSelect: () => act("pause") },
    );
  if (box.status === "paused") items.push({ label: "Resume", icon: <Play aria-hidden className={icon} />, onSelect: () => act("resume") });
  if (items.length) items.push(null);
  items.push({ label: "Kill", icon: <Trash2 aria-hidden className={icon} />, danger: true, onSelect: () => act("kill") });
  return items;
}

// Clicks in a menu or dialog of the row bubble to it, too, though they are elsewhere on the page.
function isOf(row: Element, target: Element) {
  return row.contains(target) && !target.closest("a, button, label");
}

export function SandboxRow({ box, metric, selected, onSelect, onAct, onTerminal, onPeek }: {
  box: Box;
  metric: SandboxMetric | undefined;
  selected: boolean;
  onSelect: (on: boolean) => void;
  onAct: (action: Action) => void;
  onTerminal: () => void;
  onPeek: () => void;
}) {
  const fixed = hasEnded(box.status) || box.user !== undefined;
  const notes = Object.entries(box.metadata);
  return (
    <tr
      data-box={box.id}
      aria-selected={selected}
      onClick={(event) => !box.user && isOf(event.currentTarget, event.target as Element) && onPeek()}
      className={cx("border-t border-line hover:bg-hover has-[[data-row]:focus-visible]:bg-hover", selected && "bg-accent-soft")}
    >
      <td className={cx(CELL, "hidden w-8 pl-3 sm:table-cell")}>
        {!fixed && (
          <Tick label={`Select ${box.id}`} checked={selected} onChange={(event) => onSelect(event.target.checked)} />
        )}
      </td>
      <td className={CELL}>
        <StatusBadge kind="sandbox" state={box.status} />
      </td>
      <td className={cx(CELL, "max-w-26 sm:max-w-64")}>
        <span className="flex items-center">
          {box.user ? (
            <span data-row={box.id} tabIndex={-1} className="truncate font-mono text-[13px]">
              {box.id}
            </span>
          ) : (
            <Link data-row={box.id} to="/sandboxes/$sandboxId" params={{ sandboxId: box.id }} className="truncate font-mono text-[13px] hover:underline">
              {box.id}
            </Link>
          )}
          <span className="hidden sm:inline">
            <CopyButton text={box.backendId} label="Copy the id" />
          </span>
        </span>
        {(notes.length > 0 || box.reason) && (
          <span className={cx("block truncate text-xs", box.status === "error" ? "text-bad" : "text-muted")}>
            {box.reason || notes.map(([name, value]) => `${name}: ${value}`).join(", ")}
          </span>
        )}
      </td>
      <td className={cx(CELL, "hidden max-w-56 md:table-cell")}>
        {box.user ? <span>User {box.user}</span> : <Owner owner={box.owner} />}
        {box.repoUrl && (
          <span className="block truncate text-xs text-muted">
            {repoName(box.repoUrl)}
            {box.branch && ` · ${box.branch}`}
          </span>
        )}
      </td>
      <td className={cx(CELL, "hidden xl:table-cell")}>{box.template || <span className="text-muted">–</span>}</td>
      <Use metric={box.status === "running" ? metric : undefined} />
      <td className={cx(CELL, "hidden text-muted md:table-cell")}>
        <Ago time={box.endedAt ?? box.createdAt} />
      </td>
      <td className={CELL}>{box.status === "running" && box.endAt ? <TimeLeft endAt={box.endAt} /> : <span className="text-muted">–</span>}</td>
      <td className={cx(CELL, "pr-3 text-right")}>
        {!fixed && (
          <Menu
            label={`Actions of ${box.id}`}
            trigger={
              <IconButton label={`Actions of ${box.id}`} small disabled={isChanging(box.status)}>
                <Ellipsis aria-hidden className="size-4" />
              </IconButton>
            }
            items={actionsOf(box, onAct, onTerminal)}
          />
        )}
      </td>
    </tr>
  );
}
