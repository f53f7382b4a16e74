// The board by keyboard: the focused card is the one that keys act on.
import { arrow, focusedRow, focusedRowId, rowShortcuts, stepRow } from "@/shell/rows";
import { useShortcuts } from "@/shell/shortcuts";
import { MAIN, type Task, titleOf } from "./model";

/** To the next column that has a card, at about the same height. */
function sideways(by: number) {
  const here = focusedRow();
  const own = here?.closest("[data-column]");
  if (!here || !own) return stepRow(0);
  const columns = [...document.querySelectorAll("[data-column]")];
  const cards = (column: Element) => [...column.querySelectorAll<HTMLElement>("[data-row]")];
  const index = cards(own).indexOf(here);
  for (let at = columns.indexOf(own) + by; columns[at]; at += by) {
    const list = cards(columns[at]!);
    const next = list[Math.min(index, list.length - 1)];
    if (next) return next.focus();
  }
  return false;
}

export function useBoardKeys({ find, move, select, add, selectAll, clear, search, close, remove }: {
  find: (id: string | undefined) => Task | undefined;
  move: (task: Task, status: Task["status"]) => void;
  select: (id: string) => void;
  add: (id: string) => void;
  selectAll: () => void;
  clear: () => void;
  search: () => void;
  close: () => void;
  remove: (task: Task) => void;
}) {
  const scope = "Board";
  const withTask = (act: (task: Task) => void) => () => {
    const task = find(focusedRowId());
    if (task) act(task);
  };
  const extend = (by: number) => () => {
    const from = focusedRowId();
    const to = stepRow(by);
    for (const id of [from, to && to.dataset.row]) if (id) add(id);
  };
  const leave = () => {
    close();
    clear();
  };
  useShortcuts([
    { keys: "/", label: "Search", scope, run: search },
    ...rowShortcuts(scope, "task"),
    { keys: "h", label: "Column to the left", scope, run: () => sideways(-1) },
    { keys: "ArrowLeft", label: "Column to the left", scope, run: arrow(() => sideways(-1)) },
    { keys: "l", label: "Column to the right", scope, run: () => sideways(1) },
    { keys: "ArrowRight", label: "Column to the right", scope, run: arrow(() => sideways(1)) },
    ...MAIN.map((status, index) => ({
      keys: String(index + 1),
      label: `Move to ${titleOf(status)}`,
      scope,
      run: withTask((task) => move(task, status)),
    })),
    { keys: "x", label: "Select", scope, run: withTask((task) => select(task.id)) },
    { keys: "J", label: "Select also the next one", scope, run: extend(1) },
    { keys: "K", label: "Select also the previous one", scope, run: extend(-1) },
    { keys: "Mod+a", label: "Select all", scope, run: selectAll },
    { keys: "d", label: "Delete", scope, run: withTask(remove) },
    { keys: "Escape", label: "Clear the selection, close the panel", scope, run: leave },
  ]);
}
