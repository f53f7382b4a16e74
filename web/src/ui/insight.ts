import { type RefObject, useEffect, useRef } from "react";

const CHOSEN = '[data-state="active"], [aria-current="page"], [aria-pressed="true"]';

/** For a row that scrolls sideways: what is chosen in it is scrolled into sight, with a part of its neighbours. */
export function useChosenInSight<T extends HTMLElement>(value: string): RefObject<T | null> {
  const row = useRef<T>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `value` is what is chosen
  useEffect(() => {
    const chosen = row.current?.querySelector<HTMLElement>(CHOSEN);
    if (row.current && chosen) row.current.scrollLeft = chosen.offsetLeft - (row.current.clientWidth - chosen.offsetWidth) / 2;
  }, [value]);
  return row;
}
