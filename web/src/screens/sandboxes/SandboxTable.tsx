import { useVirtualizer } from "@tanstack/react-virtual";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { focusedRowId, useRows } from "@/shell/rows";
import { useShortcuts } from "@/shell/shortcuts";
import { Tick } from "@/ui/field";
import { COARSE, useMedia } from "@/ui/media";
import { type Box, hasEnded } from "./boxes";
import { type Action, latestMetricsQuery } from "./queries";
import { SandboxRow } from "./SandboxRow";

const HEAD = "px-2 py-2 font-medium";
const ROW = 49;
const ROW_BY_FINGER = 57;

const isChoosable = (box: Box) => !hasEnded(box.status) && !box.user;

function Head({ all, some, onAll, ended }: { all: boolean; some: boolean; onAll: (on: boolean) => void; ended: boolean }) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (box.current) box.current.indeterminate = some && !all;
  }, [some, all]);
  return (
    <thead className="sticky top-0 z-10 bg-panel text-left text-xs text-muted">
      <tr>
        <th className={`${HEAD} hidden pl-3 sm:table-cell`}>
          <Tick ref={box} label="Select all" checked={all} onChange={(event) => onAll(event.target.checked)} />
        </th>
        <th className={HEAD}>State</th>
        <th className={HEAD}>Sandbox</th>
        <th className={`${HEAD} hidden md:table-cell`}>Owner</th>
        <th className={`${HEAD} hidden xl:table-cell`}>Template</th>
        <th className={`${HEAD} hidden lg:table-cell`}>CPU</th>
        <th className={`${HEAD} hidden lg:table-cell`}>Memory</th>
        <th className={`${HEAD} hidden lg:table-cell`}>Disk</th>
        <th className={`${HEAD} hidden md:table-cell`}>{ended ? "Ended" : "Created"}</th>
        <th className={HEAD}>Time left</th>
        <th className={HEAD}>
          <span className="sr-only">Actions</span>
        </th>
      </tr>
    </thead>
  );
}

/** o opens the focused row, Space looks into it beside the list, x selects it. */
function useRowKeys(boxes: Box[], { toggle, open, peek, clear }: Record<"toggle" | "open" | "peek", (box: Box) => void> & { clear: () => void }) {
  const on = (act: (box: Box) => void) => () => {
    const id = focusedRowId();
    const box = boxes.find((each) => each.id === id);
    return box ? act(box) : false;
  };
  const scope = "Sandboxes";
  useRows(scope, "sandbox");
  useShortcuts([
    { keys: "x", label: "Select the sandbox", scope, run: on(toggle) },
    { keys: "o", label: "Open the sandbox", scope, run: on(open) },
    { keys: "Space", label: "Look into the sandbox", scope, run: on(peek) },
    { keys: "Escape", label: "Clear the selection", scope, run: clear },
  ]);
}

export function SandboxTable({ boxes, selected, onSelect, onAct, onPeek }: {
  boxes: Box[];
  selected: ReadonlySet<string>;
  onSelect: (ids: ReadonlySet<string>) => void;
  onAct: (action: Action, box: Box) => void;
  onPeek: (box: Box) => void;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const choosable = boxes.filter(isChoosable);
  const running = boxes.filter((box) => box.status === "running" && !box.user).map((box) => box.backendId);
  const metrics = useQuery(latestMetricsQuery(running.slice(0, 100))).data ?? {};
  const toggle = (box: Box, on = !selected.has(box.id)) => {
    const next = new Set(selected);
    if (on) next.add(box.id);
    else next.delete(box.id);
    onSelect(next);
  };
  const open = (box: Box, tab?: string) =>
    void navigate({ to: "/sandboxes/$sandboxId", params: { sandboxId: box.id }, search: tab ? { tab } : {} });
  useRowKeys(boxes, {
    toggle: (box) => isChoosable(box) && toggle(box),
    open: (box) => !box.user && open(box),
    peek: (box) => !box.user && onPeek(box),
    clear: () => onSelect(new Set()),
  });
  const height = useMedia(COARSE) ? ROW_BY_FINGER : ROW;
  const rows = useVirtualizer({ count: boxes.length, getScrollElement: () => scroller.current, estimateSize: () => height, overscan: 12 });

  const items = rows.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = rows.getTotalSize() - (items[items.length - 1]?.end ?? 0);
  const gap = (height: number) => height > 0 && <tr aria-hidden style={{ height }} />;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <div ref={scroller} tabIndex={0} role="region" aria-label="Sandboxes" className="max-h-[calc(100dvh-13rem)] scroll-pt-12 overflow-auto rounded-lg border border-line bg-panel">
      <table className="w-full border-collapse">
        <Head
          all={choosable.length > 0 && choosable.every((box) => selected.has(box.id))}
          some={choosable.some((box) => selected.has(box.id))}
          onAll={(on) => onSelect(new Set(on ? choosable.map((box) => box.id) : []))}
          ended={choosable.length === 0}
        />
        <tbody>
          {gap(above)}
          {items.map((item) => {
            const box = boxes[item.index]!;
            return (
              <SandboxRow
                key={box.id}
                box={box}
                metric={metrics[box.backendId]}
                selected={selected.has(box.id)}
                onSelect={(on) => toggle(box, on)}
                onAct={(action) => onAct(action, box)}
                onTerminal={() => open(box, "terminal")}
                onPeek={() => onPeek(box)}
              />
            );
          })}
          {gap(below)}
        </tbody>
      </table>
    </div>
  );
}
