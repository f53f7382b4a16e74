import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeAll, expect, it } from "vitest";
import { focusedRowId, useRows } from "./rows";

// jsdom lays nothing out: everything is in sight.
beforeAll(() => {
  Element.prototype.getClientRects = () => [{}] as unknown as DOMRectList;
});
afterEach(cleanup);

function List() {
  useRows("List", "thing");
  return (
    <>
      <ul>
        {["a", "b", "c"].map((name) => (
          <li key={name}>
            <a data-row={name} href={`#${name}`}>
              {name}
            </a>
            <button type="button">Menu of {name}</button>
          </li>
        ))}
      </ul>
      <aside>
        <button type="button">Elsewhere</button>
      </aside>
    </>
  );
}

it("j and k and the arrows move from row to row and stop at the ends", async () => {
  render(<List />);
  const user = userEvent.setup();
  await user.keyboard("{ArrowDown}");
  expect(focusedRowId()).toBe("a");
  await user.keyboard("j{ArrowDown}{ArrowDown}j");
  expect(focusedRowId()).toBe("c");
  await user.keyboard("k{ArrowUp}{ArrowUp}");
  expect(focusedRowId()).toBe("a");
});

it("what lies in a row belongs to it", async () => {
  render(<List />);
  screen.getByText("Menu of b").focus();
  expect(focusedRowId()).toBe("b");
  await userEvent.setup().keyboard("{ArrowDown}");
  expect(document.activeElement).toBe(screen.getByText("c"));
});

it("beside the list the arrows are the browser's, j and k still go there", async () => {
  render(<List />);
  const user = userEvent.setup();
  const elsewhere = screen.getByText("Elsewhere");
  elsewhere.focus();
  await user.keyboard("{ArrowDown}");
  expect(document.activeElement).toBe(elsewhere);
  await user.keyboard("j");
  expect(focusedRowId()).toBe("a");
});
