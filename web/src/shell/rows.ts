// Lists by keyboard: j and k or the arrows move the focus from row to row. A row is what opens it, a link or a button
// with `data-row`, so Enter needs no code.
import { type Shortcut, useShortcuts } from "./shortcuts";

const ROW = "[data-row]";

/** The row that has the focus, itself or by something in its line. */
export function focusedRow(): HTMLElement | null {
  const focused = document.activeElement;
  return focused?.closest<HTMLElement>(ROW) ?? focused?.closest("tr, li")?.querySelector<HTMLElement>(ROW) ?? null;
}

/** What the focused row stands for: the text of its `data-row`. */
export const focusedRowId = () => focusedRow()?.dataset.row;

/** Moves the focus by so many rows, among those in the same part if the list has parts (`[data-rows]`). False at the end. */
export function stepRow(by: number): HTMLElement | false {
  const here = focusedRow();
  const rows = [...(here?.closest("[data-rows]") ?? document).querySelectorAll<HTMLElement>(ROW)].filter((row) => row.getClientRects().length > 0);
  const next = here ? rows[rows.indexOf(here) + by] : rows[0];
  next?.focus();
  return next ?? false;
}

/** Whether an arrow key may move rows: the focus is in one, or on something that holds them, such as the whole page. In
 * a panel beside the list it scrolls that panel. */
export const isAmongRows = () => focusedRow() !== null || document.activeElement?.querySelector(ROW) != null;

export const arrow = (run: () => unknown) => () => isAmongRows() && run();

/** `one`: what a row is, as in "Next run". */
export function rowShortcuts(scope: string, one: string): Shortcut[] {
  return [1, -1].flatMap((by) => {
    const label = `${by > 0 ? "Next" : "Previous"} ${one}`;
    return [
      { keys: by > 0 ? "j" : "k", label, scope, run: () => stepRow(by) },
      { keys: by > 0 ? "ArrowDown" : "ArrowUp", label, scope, run: arrow(() => stepRow(by)) },
    ];
  });
}

export function useRows(scope: string, one: string) {
  useShortcuts(rowShortcuts(scope, one));
}
