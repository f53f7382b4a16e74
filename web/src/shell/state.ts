import { create } from "zustand";

/** What of the shell is open. */
export const useShell = create<{ palette: boolean; help: boolean; drawer: boolean; newTask: boolean }>(() => ({
  palette: false,
  help: false,
  drawer: false,
  newTask: false,
}));
