// What every card needs and the board knows.
import { createContext, useContext } from "react";
import type { Agent, Status, Surroundings, Task } from "./model";

export interface BoardContext {
  around: Surroundings;
  agents: Agent[];
  /** Dollars by task. */
  costs: Map<string, number>;
  /** The task whose panel is open. */
  open?: string;
  selected: Set<string>;
  openTask: (id: string) => void;
  /** `range`: everything between the last one and this. */
  select: (id: string, range?: boolean) => void;
  askDelete: (tasks: Task[]) => void;
  /** Reads what a column, or all that are shown, have on the server only. */
  loadRest: (status?: Status) => void;
  loadingRest: boolean;
}

export const BoardContext = createContext<BoardContext | null>(null);

export function useBoard(): BoardContext {
  const board = useContext(BoardContext);
  if (!board) throw new Error("a card lives on a board");
  return board;
}
