// Moving a task to another column: what has to be asked first, what is shown before the server has answered,
// and the way back when it refuses.
import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { create } from "zustand";
import { ApiError } from "@/api/client";
import { agentsQuery, keys } from "@/api/queries";
import { failed } from "@/ui/toast";
import { moveTask, startTask } from "./actions";
import { type Agent, hasOpenPull, nameOf, type Place, starterOf, type Task, titleOf } from "./model";

export type Question =
  | { kind: "wip"; task: Task; reason?: string; feedback?: string }
  | { kind: "feedback"; task: Task }
  | { kind: "merge"; task: Task; place: Place }
  | { kind: "stop"; task: Task; place: Place };

interface Moves {
  /** Where tasks are shown until the server has answered. */
  places: Record<string, Place>;
  /** Tasks whose last move was refused. */
  refused: Record<string, string>;
  question: Question | null;
  /** For screen readers. */
  said: string;
}

export const useMoves = create<Moves>(() => ({ places: {}, refused: {}, question: null, said: "" }));
export const ask = (question: Question | null) => useMoves.setState({ question });

const omit = <T,>(record: Record<string, T>, id: string) => Object.fromEntries(Object.entries(record).filter(([key]) => key !== id));

/** The card gets the focus again: it is another element in another column now. */
export function focusCard(id: string) {
  requestAnimationFrame(() => {
    if (!document.activeElement || document.activeElement === document.body)
      document.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"]`)?.focus();
  });
}

export function useMove() {
  const queries = useQueryClient();
  return useMemo(() => {
    async function carryOut(task: Task, place: Place, start?: { agent?: string; feedback?: string }) {
      useMoves.setState((state) => ({
        question: null,
        places: { ...state.places, [task.id]: place },
        refused: omit(state.refused, task.id),
      }));
      focusCard(task.id);
      try {
        if (start) {
          await startTask(task.id, {
            ...(start.agent && { agent_id: start.agent }),
            ...(start.feedback && { feedback: start.feedback }),
          });
        } else await moveTask(task.id, place);
        useMoves.setState({ said: `${nameOf(task)} is in ${titleOf(place.status)} now` });
        await Promise.all([keys.board, keys.agents, keys.task(task.id)].map((queryKey) => queries.invalidateQueries({ queryKey })));
      } catch (error) {
        // Only the server knows who of a squad is free.
        if (start && task.squad_id && error instanceof ApiError && /busy/.test(error.message))
          ask({ kind: "wip", task, reason: error.message, feedback: start.feedback });
        else {
          useMoves.setState((state) => ({
            refused: { ...state.refused, [task.id]: (error as Error).message },
            said: `${nameOf(task)} is back in ${titleOf(task.status)}`,
          }));
          failed(`${nameOf(task)} stays in ${titleOf(task.status)}`, error, () => void carryOut(task, place, start));
        }
      } finally {
        useMoves.setState((state) => ({ places: omit(state.places, task.id) }));
        focusCard(task.id);
      }
    }

    async function start(task: Task, feedback?: string) {
      const agents: Agent[] = await queries.ensureQueryData(agentsQuery).catch(() => []);
      const agent = starterOf(task, agents);
      if (agent === undefined) ask({ kind: "wip", task, feedback });
      else await carryOut(task, { status: "in_progress" }, { agent, feedback });
    }

    /** What a drop, a key or a menu asks for. */
    async function move(task: Task, place: Place) {
      if (place.status === task.status) {
        if (place.position !== undefined && place.position !== task.position) await carryOut(task, place);
      } else if (place.status === "in_progress") {
        if (task.status === "in_review") ask({ kind: "feedback", task });
        else await start(task);
      } else if (task.status === "in_progress") ask({ kind: "stop", task, place });
      else if (place.status === "done" && hasOpenPull(task)) ask({ kind: "merge", task, place });
      else await carryOut(task, place);
    }
    return { move, start, carryOut };
  }, [queries]);
}
