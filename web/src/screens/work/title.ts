import { useEffect } from "react";

/** The title of the browser's tab. While another tab is in front it also tells how the work stands. */
export function useWorkTitle(title: string, state: "Running" | "Needs you" | "Failed" | "") {
  useEffect(() => {
    const show = () => {
      document.title = `${document.hidden && state ? `${state}: ` : ""}${title} · Caisson`;
    };
    show();
    document.addEventListener("visibilitychange", show);
    return () => document.removeEventListener("visibilitychange", show);
  }, [title, state]);
}
