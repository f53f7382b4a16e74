// How diffs are shown: the same everywhere, and remembered.
import { create } from "zustand";
import { useMedia } from "@/ui/media";

export interface DiffPreferences {
  view: "unified" | "split";
  wrap: boolean;
  ignoreSpace: boolean;
}

const STORAGE = "caisson-diff";
const SPLIT_FROM = "(min-width: 1100px)";

function stored(): DiffPreferences {
  const initial: DiffPreferences = { view: "unified", wrap: true, ignoreSpace: false };
  try {
    return { ...initial, ...(JSON.parse(localStorage.getItem(STORAGE) ?? "{}") as Partial<DiffPreferences>) };
  } catch {
    return initial;
  }
}

export const usePreferences = create<DiffPreferences>(stored);

export function prefer(change: Partial<DiffPreferences>) {
  usePreferences.setState(change);
  localStorage.setItem(STORAGE, JSON.stringify(usePreferences.getState()));
}

/** Whether the window is wide enough for two columns. */
export const useRoomForSplit = () => useMedia(SPLIT_FROM);

/** Which files somebody has looked at, as they were then: one that changed is not viewed any more. */
export function viewedStorage(id: string) {
  const name = `caisson-viewed-${id}`;
  return {
    read(): Record<string, number> {
      try {
        return JSON.parse(localStorage.getItem(name) ?? "{}") as Record<string, number>;
      } catch {
        return {};
      }
    },
    write(viewed: Record<string, number>) {
      localStorage.setItem(name, JSON.stringify(viewed));
    },
  };
}
