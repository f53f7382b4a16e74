import { useSyncExternalStore } from "react";

/** Whether the window matches a media query, now and after every change. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (changed) => {
      const media = matchMedia(query);
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    () => matchMedia(query).matches,
  );
}

export const NARROW = "(max-width: 767px)";
/** By finger: theme.css makes everything that can be pressed larger. */
export const COARSE = "(pointer: coarse)";

function onNetwork(changed: () => void) {
  addEventListener("online", changed);
  addEventListener("offline", changed);
  return () => {
    removeEventListener("online", changed);
    removeEventListener("offline", changed);
  };
}

/** Whether the machine has a network at all. */
export const useOnline = () => useSyncExternalStore(onNetwork, () => navigator.onLine);
