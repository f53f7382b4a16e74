import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useRef } from "react";

export type Url = Record<string, string | undefined>;

/** The search part of the address: what is chosen on a screen. "" and undefined take a name out of it. `hash`: what
 * stands behind the # stays. */
export function useUrl(): [Url, (patch: Url, options?: { push?: boolean; hash?: boolean }) => void] {
  const search = useSearch({ strict: false }) as Url;
  const navigate = useNavigate();
  const change = useCallback(
    (patch: Url, { push = false, hash = false } = {}) =>
      void navigate({
        to: ".",
        search: ((old: Url) =>
          Object.fromEntries(Object.entries({ ...old, ...patch }).filter(([, value]) => value))) as never,
        hash: hash || undefined,
        replace: !push,
        resetScroll: false,
      }),
    [navigate],
  );
  return [search, change];
}

/** One of them, and how to change it. */
export function useParam(name: string): [string | undefined, (value: string | undefined) => void] {
  const [url, change] = useUrl();
  return [url[name], (value) => change({ [name]: value })];
}

const TYPING_MS = 300;

/** Keeps in the address what is being typed, when the typing pauses: what hangs on it is too much for every key. */
export function useKept(name: string, text: string) {
  const [, change] = useUrl();
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    const timer = setTimeout(() => change({ [name]: text }, { hash: true }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [name, text, change]);
}
