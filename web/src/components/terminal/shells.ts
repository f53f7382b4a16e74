// Which shells are open in a sandbox: tabs, whose ids are in the URL so that a reload finds the shells again.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { listShells } from "./connection";

export interface Shell {
  /** Of the tab, for as long as this page lives. */
  key: number;
  /** Of the shell; "" until the server has told it. */
  id: string;
}

let keys = 0;
const shell = (id = ""): Shell => ({ key: ++keys, id });

export const parseShells = (text: string | undefined) => (text ?? "").split(",").filter((id) => /^\w+$/.test(id));

/** `shells` is null until it is known what is there. */
export function useShells(sandboxId: string) {
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const navigate = useNavigate();
  const first = useRef(parseShells(search.shells));
  const [shells, setShells] = useState<Shell[] | null>(() => (first.current.length ? first.current.map(shell) : null));
  const [active, setActive] = useState<number>(() => {
    const index = first.current.indexOf(search.shell ?? "");
    return shells?.[Math.max(0, index)]?.key ?? 0;
  });

  // Without an address, the shells that somebody left are taken up again.
  useEffect(() => {
    if (shells) return;
    let stale = false;
    const show = (found: Shell[]) => {
      if (stale) return;
      setShells(found);
      setActive(found[0]!.key);
    };
    listShells(sandboxId).then(
      (all) => {
        const left = all.filter((each) => each.attached === 0).map((each) => shell(each.id));
        show(left.length ? left : [shell()]);
      },
      () => show([shell()]),
    );
    return () => {
      stale = true;
    };
  }, [sandboxId, shells]);

  const ids = shells?.map((each) => each.id).filter(Boolean).join(",") || undefined;
  const activeId = shells?.find((each) => each.key === active)?.id || undefined;
  useEffect(() => {
    if (!shells) return;
    void navigate({
      to: ".",
      search: (old: Record<string, unknown>) => ({ ...old, shells: ids, shell: activeId }),
      replace: true,
    } as never);
  }, [shells, ids, activeId, navigate]);

  return {
    shells: shells ?? [],
    loading: shells === null,
    active,
    setActive,
    add: () => {
      const made = shell();
      setShells((old) => [...(old ?? []), made]);
      setActive(made.key);
    },
    told: (key: number, id: string) =>
      setShells((old) => (old ?? []).map((each) => (each.key === key && each.id !== id ? { ...each, id } : each))),
    remove: (key: number) => {
      const left = (shells ?? []).filter((each) => each.key !== key);
      setShells(left);
      if (key === active) setActive(left[left.length - 1]?.key ?? 0);
    },
  };
}
