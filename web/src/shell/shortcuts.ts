// The one registry of keyboard shortcuts: what is registered works and is printed in the help.
//
// Keys: "c", "?", "Escape", "Mod+k" (Ctrl, or Cmd on a Mac), "Mod+Enter", "g b" (one after the other).
// Single letters are silent while a text field or a terminal has the focus, and can be switched off.
import { useEffect, useRef } from "react";
import { create } from "zustand";

export interface Shortcut {
  keys: string;
  /** What it does, for the help. */
  label: string;
  /** Where it works, for the help: "Anywhere", "Board", "Logs"… */
  scope: string;
  /** Works also while a text field has the focus. */
  inFields?: boolean;
  /** False = it does nothing now: the key is left to the browser. */
  run: (event: KeyboardEvent) => unknown;
}

const STORAGE = "caisson-single-keys";
const SEQUENCE_MS = 800;

export const useShortcutSettings = create<{ singleKeys: boolean }>(() => ({
  singleKeys: localStorage.getItem(STORAGE) !== "off",
}));

export function setSingleKeys(on: boolean) {
  localStorage.setItem(STORAGE, on ? "on" : "off");
  useShortcutSettings.setState({ singleKeys: on });
}

const registry = new Set<Shortcut>();
let first = "";
let firstAt = 0;

/** Everything that works on this page at the moment. */
export const activeShortcuts = () => [...registry];

/** The shortcuts live as long as the component. `run` may change with every render. */
export function useShortcuts(shortcuts: Shortcut[]) {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  const names = shortcuts.map((each) => `${each.scope} ${each.keys} ${each.label}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: `names` stands for the list
  useEffect(() => {
    const mine = latest.current.map((shortcut, index) => ({
      ...shortcut,
      run: (event: KeyboardEvent) => latest.current[index]?.run(event),
    }));
    for (const shortcut of mine) registry.add(shortcut);
    return () => {
      for (const shortcut of mine) registry.delete(shortcut);
    };
  }, [names]);
}

/** "Mod+k", "?", "ArrowUp": how a key press is spelled in the registry. */
export function spell(event: KeyboardEvent): string {
  const mod = event.ctrlKey || event.metaKey ? "Mod+" : "";
  const shift = event.shiftKey && event.key.length > 1 ? "Shift+" : "";
  const key = mod && event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return mod + (event.shiftKey && mod && event.key.length === 1 ? "Shift+" : shift) + (key === " " ? "Space" : key);
}

function inField(target: EventTarget | null): boolean {
  const element = target instanceof HTMLElement ? target : null;
  return Boolean(element?.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], .xterm"));
}

function press(event: KeyboardEvent) {
  if (event.defaultPrevented || event.isComposing) return;
  const spelled = spell(event);
  const sequence = Date.now() - firstAt < SEQUENCE_MS ? `${first} ${spelled}` : "";
  first = "";
  const field = inField(event.target);
  const dialog = document.querySelector("[role=dialog],[role=alertdialog],[role=menu]");
  const plain = !spelled.includes("Mod+");
  // What can be pressed hears these itself; a link hears only Enter.
  const pressable = spelled === "Enter" ? "a, button, summary, input" : "button, summary, input";
  if ((spelled === "Space" || spelled === "Enter") && (event.target as Element).closest?.(pressable)) return;
  if (plain && !useShortcutSettings.getState().singleKeys && spelled.length === 1) return;
  // The newest registration wins: a pane over its screen over the shell.
  const all = [...registry].reverse();
  const found = all.find((each) => sequence && each.keys === sequence) ?? all.find((each) => each.keys === spelled);
  if (found) {
    if (field && !found.inFields) return;
    // What lies under an open dialog does not hear plain keys.
    if (dialog && plain && !found.inFields && !dialog.contains(event.target as Node)) return;
    if (dialog && plain && !found.inFields && found.scope !== "Dialog") return;
    if (found.run(event) !== false) event.preventDefault();
  } else if (!field && all.some((each) => each.keys.startsWith(`${spelled} `))) {
    first = spelled;
    firstAt = Date.now();
  }
}

addEventListener("keydown", press);
