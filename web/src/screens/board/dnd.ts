// How cards are dragged: what they land on, how arrow keys move them, what is said about it.
import {
  type Announcements,
  type CollisionDetection,
  type KeyboardCoordinateGetter,
  KeyboardSensor,
  MouseSensor,
  pointerWithin,
  rectIntersection,
  TouchSensor,
  type UniqueIdentifier,
  useSensor,
  useSensors,
} from "@dnd-kit/core";
import { nameOf, type Status, type Task, titleOf } from "./model";

/** What the dragged card is over: a column, or the card of `before` in it. */
export interface Target {
  status: Status;
  before?: string;
}

export const columnId = (status: Status) => `column ${status}`;
export const cardId = (id: string) => `card ${id}`;
const isCard = (id: UniqueIdentifier) => String(id).startsWith("card ");

/** The card under the pointer, else the column; by keyboard what the card covers most. */
export const detect: CollisionDetection = (given) => {
  const own = cardId(String(given.active.id));
  const found = (given.pointerCoordinates ? pointerWithin(given) : rectIntersection(given)).filter(({ id }) => id !== own);
  const card = found.find(({ id }) => isCard(id));
  return card ? [card] : found.slice(0, 1);
};

const STEP: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };

/** Left and right: the next column. Up and down: the next card of the column. */
const coordinates: KeyboardCoordinateGetter = (event, { context }) => {
  const step = STEP[event.code];
  if (!step) return undefined;
  event.preventDefault();
  const { droppableContainers, droppableRects, over, active } = context;
  const places = droppableContainers
    .getEnabled()
    .flatMap(({ id, data }) => {
      const rect = droppableRects.get(id);
      return rect ? [{ id, rect, target: data.current as Target }] : [];
    });
  const here = (over?.data.current as Target | undefined)?.status ?? (active?.data.current as Task | undefined)?.status;
  const sideways = event.code === "ArrowLeft" || event.code === "ArrowRight";
  const line = places
    .filter(({ id, target }) => (sideways ? !isCard(id) : isCard(id) && target.status === here))
    .sort((a, b) => (sideways ? a.rect.left - b.rect.left : a.rect.top - b.rect.top));
  const at = line.findIndex(({ id, target }) =>
    sideways ? target.status === here : id === over?.id || (over == null && id === cardId(String(active?.id))),
  );
  const next = line[at + step];
  if (!next) return undefined;
  return { x: next.rect.left + 8, y: sideways ? next.rect.top + 44 : next.rect.top };
};

export function useBoardSensors() {
  return useSensors(
    // A click is no drag, and a finger that moves at once scrolls.
    useSensor(MouseSensor, { activationConstraint: { distance: 6 } }),
    useSensor(TouchSensor, { activationConstraint: { delay: 220, tolerance: 8 } }),
    useSensor(KeyboardSensor, {
      coordinateGetter: coordinates,
      keyboardCodes: { start: ["Space"], cancel: ["Escape"], end: ["Space", "Enter"] },
    }),
  );
}

export const instructions = {
  draggable:
    "Press Space to pick the task up, the arrow keys to move it, Space to drop it, Escape to put it back. " +
    "The keys 1 to 4 move it to a column at once.",
};

type Named = { data: { current?: unknown } } | null;
const taskIn = (active: Named) => nameOf(active?.data.current as Task);
const placeIn = (over: Named) => titleOf((over?.data.current as Target).status);

// That a card is over its own column when it is picked up would cut the first announcement short.
let fresh = false;

export const announcements: Announcements = {
  onDragStart: ({ active }) => {
    fresh = true;
    return `${taskIn(active)} was picked up.`;
  },
  onDragOver: ({ active, over }) => {
    const told = !fresh || (over?.data.current as Target | undefined)?.status !== (active.data.current as Task).status;
    fresh = false;
    if (!told) return undefined;
    return over ? `${taskIn(active)} is over ${placeIn(over)}.` : `${taskIn(active)} is over no column.`;
  },
  onDragEnd: ({ active, over }) => (over ? `${taskIn(active)} was dropped on ${placeIn(over)}.` : `${taskIn(active)} was put back.`),
  onDragCancel: ({ active }) => `${taskIn(active)} was put back.`,
};
