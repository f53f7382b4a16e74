import { render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { activeShortcuts, setSingleKeys, type Shortcut, useShortcuts } from "./shortcuts";

function Board({ shortcuts, field }: { shortcuts: Shortcut[]; field?: boolean }) {
  useShortcuts(shortcuts);
  return field ? <input aria-label="field" /> : null;
}

function recorder(keys: string, log: string[], inFields = false): Shortcut {
  return { keys, label: keys, scope: "Test", inFields, run: () => log.push(keys) };
}

test("single keys, sequences and keys with Ctrl", async () => {
  const log: string[] = [];
  const view = render(<Board shortcuts={["c", "g b", "Mod+k", "?"].map((keys) => recorder(keys, log))} />);
  await userEvent.keyboard("c");
  await userEvent.keyboard("gb");
  await userEvent.keyboard("{Control>}k{/Control}");
  await userEvent.keyboard("?");
  expect(log).toEqual(["c", "g b", "Mod+k", "?"]);
  view.unmount();
  await userEvent.keyboard("c");
  expect(log.length).toBe(4);
  expect(activeShortcuts()).toEqual([]);
});

test("letters are typed into a field; what works there says so", async () => {
  const log: string[] = [];
  const view = render(<Board field shortcuts={[recorder("c", log), recorder("Mod+Enter", log, true)]} />);
  await userEvent.click(view.getByLabelText("field"));
  await userEvent.keyboard("c{Control>}{Enter}{/Control}");
  expect(log).toEqual(["Mod+Enter"]);
  view.unmount();
});

test("the newest registration wins, and letters can be switched off", async () => {
  const log: string[] = [];
  const view = render(
    <>
      <Board shortcuts={[{ ...recorder("x", log), run: () => log.push("below") }]} />
      <Board shortcuts={[{ ...recorder("x", log), run: () => log.push("above") }]} />
    </>,
  );
  await userEvent.keyboard("x");
  setSingleKeys(false);
  await userEvent.keyboard("x");
  setSingleKeys(true);
  expect(log).toEqual(["above"]);
  view.unmount();
});
