import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { KanbanSquare, Keyboard, Plus } from "lucide-react";
import { Dialog } from "radix-ui";
import { boardQuery, meQuery } from "@/api/queries";
import { PLACES } from "./navigation";
import { activeShortcuts, type Shortcut } from "./shortcuts";
import { useShell } from "./state";

const ITEM =
  "flex cursor-default items-center gap-2.5 rounded-md px-2.5 py-2 data-[selected=true]:bg-accent-soft data-[selected=true]:text-accent";

const MOVES = new Set(["j", "k", "h", "l", "J", "K", "Escape"]);
const isCommand = ({ scope, keys }: Shortcut) => scope !== "Anywhere" && !MOVES.has(keys) && !keys.startsWith("Arrow");

/** Every place, every task and every command of the screen one is on. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const me = useQuery(meQuery).data;
  const tasks = useQuery(boardQuery).data?.columns.flatMap((column) => column.tasks) ?? [];
  const act = (what: () => void) => () => {
    onClose();
    what();
  };
  // What only moves the focus is of no use here; a second key for the same is the same.
  const commands = [...new Map(activeShortcuts().filter(isCommand).map((each) => [`${each.scope} ${each.label}`, each])).values()];
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/45" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-[12dvh] left-1/2 z-50 w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 rounded-xl border border-line bg-panel shadow-float"
        >
          <Dialog.Title className="sr-only">Commands</Dialog.Title>
          <Command label="Commands" loop>
            <Command.Input
              autoFocus
              placeholder="Type a place, a task or a command…"
              className="w-full border-b border-line bg-transparent px-4 py-3 outline-none"
            />
            <Command.List className="max-h-[50dvh] overflow-y-auto p-2 [&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-semibold [&_[cmdk-group-heading]]:text-muted">
              <Command.Empty className="px-3 py-6 text-center text-muted">Nothing matches.</Command.Empty>
              <Command.Group heading="Actions">
                <Command.Item className={ITEM} onSelect={act(() => useShell.setState({ newTask: true }))}>
                  <Plus aria-hidden className="size-4" /> New task
                </Command.Item>
                <Command.Item className={ITEM} onSelect={act(() => useShell.setState({ help: true }))}>
                  <Keyboard aria-hidden className="size-4" /> Keyboard shortcuts
                </Command.Item>
              </Command.Group>
              <Command.Group heading="Go to">
                {PLACES.filter((place) => !place.admin || me?.role === "admin").map((place) => (
                  <Command.Item key={place.to} className={ITEM} onSelect={act(() => void navigate({ to: place.to }))}>
                    <place.icon aria-hidden className="size-4" /> {place.label}
                  </Command.Item>
                ))}
              </Command.Group>
              <Command.Group heading="Tasks">
                {tasks.map((task) => (
                  <Command.Item
                    key={task.id}
                    value={`#${task.number} ${task.title} ${task.id}`}
                    className={ITEM}
                    onSelect={act(() => void navigate({ to: "/work/$taskId", params: { taskId: task.id } }))}
                  >
                    <KanbanSquare aria-hidden className="size-4 shrink-0" />
                    <span className="truncate">
                      #{task.number} {task.title}
                    </span>
                  </Command.Item>
                ))}
              </Command.Group>
              {commands.length > 0 && (
                <Command.Group heading="On this screen">
                  {commands.map((each) => (
                    <Command.Item
                      key={each.scope + each.keys}
                      value={`${each.scope} ${each.label}`}
                      className={ITEM}
                      onSelect={act(() => each.run(new KeyboardEvent("keydown")))}
                    >
                      <Keyboard aria-hidden className="size-4" /> {each.label}
                      <span className="ml-auto text-xs text-muted">{each.scope}</span>
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
