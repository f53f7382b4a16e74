import { useCallback, useRef, useState } from "react";
import type { LogGroup } from "./types";

/** Which groups are open: what runs and what failed, unless the user says otherwise. One that was seen running stays
 * open at its end, so that nothing folds under the reader's eyes. */
export function useGroups(groups: LogGroup[]) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const seenRunning = useRef(new Set<string>());
  for (const group of groups) if (group.state === "running") seenRunning.current.add(group.id);
  const isOpen = useCallback(
    (group: LogGroup) => chosen.get(group.id) ?? (group.state !== "done" || seenRunning.current.has(group.id)),
    [chosen],
  );
  const setOpen = useCallback((id: string, open: boolean) => setChosen((old) => new Map(old).set(id, open)), []);
  const setAll = (open: boolean) => setChosen(new Map(groups.map((group) => [group.id, open])));
  return { isOpen, setOpen, setAll, allOpen: groups.every(isOpen) };
}
