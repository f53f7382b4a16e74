// What the user chose for terminals, kept in the browser, and the colours of the theme.
import type { ITheme } from "@xterm/xterm";
import { create } from "zustand";

const STORAGE = "caisson-terminal-screen-reader";

export const useTerminalSettings = create<{ screenReader: boolean }>(() => ({
  screenReader: localStorage.getItem(STORAGE) === "on",
}));

export function setScreenReader(on: boolean) {
  localStorage.setItem(STORAGE, on ? "on" : "off");
  useTerminalSettings.setState({ screenReader: on });
}

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** The tokens of the theme that is shown now. */
export function terminalTheme(): ITheme {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const theme: ITheme = {
    background: token("terminal"),
    foreground: token("terminal-text"),
    cursor: token("terminal-text"),
    cursorAccent: token("terminal"),
    selectionBackground: token("terminal-selection"),
  };
  for (const name of NAMES) {
    theme[name] = token(`ansi-${name}`);
    theme[`bright${name[0]!.toUpperCase()}${name.slice(1)}` as "brightRed"] = token(`ansi-bright-${name}`);
  }
  return theme;
}
