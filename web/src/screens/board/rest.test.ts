import { expect, it } from "vitest";
import type { BoardData, Task } from "./model";
import { missingOf, withRest } from "./rest";

const task = (id: string, status: string, position: number) => ({ id, status, position }) as Task;

it("a column gets what was read beyond its first page, each task once", () => {
  const board = { columns: [{ status: "done", title: "Done", count: 3, tasks: [task("a", "done", 1), task("c", "done", 3)] }] } as unknown as BoardData;
  expect(missingOf(board.columns[0]!)).toBe(1);
  const [column] = withRest(board, [task("c", "done", 3), task("b", "done", 2), task("a", "done", 1)]).columns;
  expect(column!.tasks.map((each) => each.id)).toEqual(["a", "b", "c"]);
  expect(missingOf(column!)).toBe(0);
});
