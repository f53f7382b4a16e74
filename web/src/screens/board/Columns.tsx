import { DndContext, type DragEndEvent, DragOverlay, MeasuringStrategy, useDroppable } from "@dnd-kit/core";
import { useState } from "react";
import { createPortal } from "react-dom";
import { cx } from "@/ui/classes";
import { useChosenInSight } from "@/ui/insight";
import { NARROW, useMedia } from "@/ui/media";
import { Ghost } from "./Card";
import { Column } from "./Column";
import { announcements, columnId, detect, instructions, type Target, useBoardSensors } from "./dnd";
import { type BoardData, positionBefore, type Status, type Task, titleOf } from "./model";
import { useMove } from "./moves";

export interface Shown {
  status: Status;
  count: number;
  missing: number;
  tasks: Task[];
}

/** One column at a time on a phone. A card can be dropped on the name of another one. */
function Switch({ columns, value, onChange }: { columns: Shown[]; value: Status; onChange: (status: Status) => void }) {
  const row = useChosenInSight<HTMLDivElement>(value);
  return (
    <div ref={row} role="group" aria-label="Column" className="relative flex gap-1 overflow-x-auto px-4 pb-2">
      {columns.map((column) => (
        <SwitchButton key={column.status} column={column} chosen={column.status === value} onChoose={() => onChange(column.status)} />
      ))}
    </div>
  );
}

function SwitchButton({ column, chosen, onChoose }: { column: Shown; chosen: boolean; onChoose: () => void }) {
  const target: Target = { status: column.status };
  const drop = useDroppable({ id: `${columnId(column.status)} switch`, data: target as never, disabled: chosen });
  return (
    <button
      ref={drop.setNodeRef}
      type="button"
      aria-pressed={chosen}
      onClick={onChoose}
      className={cx(
        "h-11 flex-auto shrink-0 rounded-md border px-1.5 text-xs font-medium",
        chosen ? "border-transparent bg-accent-soft text-accent" : "border-line text-muted",
        drop.isOver && "border-accent bg-accent-soft text-accent",
      )}
    >
      {titleOf(column.status)} <span className="tabular-nums">{column.tasks.length}</span>
    </button>
  );
}

export function Columns({ columns, filtered, wip, column, onColumn }: {
  columns: Shown[];
  filtered: boolean;
  wip: BoardData["wip"];
  /** The one that a narrow window shows. */
  column: Status;
  onColumn: (status: Status) => void;
}) {
  const narrow = useMedia(NARROW);
  const sensors = useBoardSensors();
  const { move } = useMove();
  const [dragged, setDragged] = useState<Task | null>(null);
  const drop = ({ active, over }: DragEndEvent) => {
    setDragged(null);
    const task = active.data.current as Task | undefined;
    const target = over?.data.current as Target | undefined;
    if (!task || !target) return;
    const others = columns.find((each) => each.status === target.status)?.tasks ?? [];
    const from = others.findIndex((each) => each.id === task.id);
    const index = others.findIndex((each) => each.id === target.before);
    if (task.status === target.status && index < 0) return;
    // Dragged down, it lands behind the card it is dropped on.
    const place = from >= 0 && from < index ? index + 1 : index;
    void move(task, { status: target.status, position: index < 0 ? undefined : positionBefore(others, place) ?? lastOf(others) });
  };
  const shown = narrow ? columns.filter((each) => each.status === column) : columns;
  return (
    <DndContext
      sensors={sensors}
      collisionDetection={detect}
      measuring={{ droppable: { strategy: MeasuringStrategy.Always } }}
      accessibility={{ announcements, screenReaderInstructions: instructions }}
      onDragStart={({ active }) => setDragged(active.data.current as Task)}
      onDragCancel={() => setDragged(null)}
      onDragEnd={drop}
    >
      <div className="flex h-full min-h-0 flex-col">
        {narrow && <Switch columns={columns} value={column} onChange={onColumn} />}
        <div data-board className="flex min-h-0 flex-1 gap-3 overflow-x-auto px-4 pb-4">
          {shown.map((each) => (
            <Column
              key={each.status}
              {...each}
              filtered={filtered}
              wip={each.status === "in_progress" ? wip : undefined}
              bare={narrow}
            />
          ))}
        </div>
      </div>
      {createPortal(<DragOverlay dropAnimation={null}>{dragged && <Ghost task={dragged} />}</DragOverlay>, document.body)}
    </DndContext>
  );
}

const lastOf = (tasks: Task[]) => (tasks.at(-1)?.position ?? 0) + 1;
