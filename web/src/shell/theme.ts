// Light, dark, or as the system is. public/theme.js applies the choice before the first paint.
import { create } from "zustand";

export type Theme = "system" | "light" | "dark";
const STORAGE = "caisson-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export const useTheme = create<{ theme: Theme; dark: boolean }>(() => {
  const theme = (localStorage.getItem(STORAGE) as Theme) ?? "system";
  return { theme, dark: isDark(theme) };
});

function isDark(theme: Theme) {
  return theme === "dark" || (theme === "system" && system.matches);
}

export function setTheme(theme: Theme) {
  localStorage.setItem(STORAGE, theme);
  show(theme);
}

function show(theme: Theme) {
  const dark = isDark(theme);
  document.documentElement.classList.toggle("dark", dark);
  useTheme.setState({ theme, dark });
}

system.addEventListener("change", () => show(useTheme.getState().theme));
