import { useNavigate } from "@tanstack/react-router";
import { Bot, Check, Ellipsis, SquareCheck, Trash2 } from "lucide-react";
import { IconButton } from "@/ui/button";
import { Menu } from "@/ui/menu";
import { useQueryClient } from "@tanstack/react-query";
import { keys } from "@/api/queries";
import { failed } from "@/ui/toast";
import { leaveQueue } from "./actions";
import { useBoard } from "./context";
import { COLUMNS, nameOf, type Task } from "./model";
import { useMove } from "./moves";

/** What can be done with a task without dragging it. */
export function TaskMenu({ task }: { task: Task }) {
  const { selected, select, askDelete } = useBoard();
  const { move } = useMove();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const leave = () =>
    leaveQueue(task.id)
      .catch((error) => failed(`${nameOf(task)} waits on`, error))
      .finally(() => queries.invalidateQueries({ queryKey: keys.board }));
  return (
    <Menu
      label={`Actions for ${nameOf(task)}`}
      trigger={
        <IconButton label={`Actions for #${task.number}`} small>
          <Ellipsis aria-hidden className="size-4" />
        </IconButton>
      }
      items={[
        ...COLUMNS.filter((column) => column.status !== task.status).map((column) => ({
          label: `Move to ${column.title}`,
          onSelect: () => void move(task, { status: column.status }),
        })),
        null,
        {
          label: selected.has(task.id) ? "Deselect" : "Select",
          icon: selected.has(task.id) ? <Check aria-hidden className="size-4" /> : <SquareCheck aria-hidden className="size-4" />,
          onSelect: () => select(task.id),
        },
        ...(task.queue_position > 0 ? [{ label: "Do not start by itself", onSelect: () => void leave() }] : []),
        {
          label: "Open in Agent work",
          icon: <Bot aria-hidden className="size-4" />,
          onSelect: () => void navigate({ to: "/work/$taskId", params: { taskId: task.id } }),
        },
        {
          label: "Delete",
          icon: <Trash2 aria-hidden className="size-4" />,
          danger: true,
          disabled: task.status === "in_progress",
          onSelect: () => askDelete([task]),
        },
      ]}
    />
  );
}
