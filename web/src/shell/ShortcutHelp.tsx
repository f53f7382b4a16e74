import { useMemo } from "react";
import { cx } from "@/ui/classes";
import { Checkbox } from "@/ui/field";
import { Dialog } from "@/ui/dialog";
import { Kbd } from "@/ui/kbd";
import { activeShortcuts, type Shortcut, setSingleKeys, useShortcutSettings } from "./shortcuts";

const ARROWS: Record<string, string> = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };

const pretty = (keys: string) => ARROWS[keys] ?? keys.replace("Mod", "Ctrl").replaceAll("+", " ");

/** Several keys may do the same. */
const byLabel = (shortcuts: Shortcut[]) => [...Map.groupBy(shortcuts, (each) => each.label)];

/** Printed from the registry: what works on the screen one is on. */
export default function ShortcutHelp({ onClose }: { onClose: () => void }) {
  const singleKeys = useShortcutSettings((state) => state.singleKeys);
  const scopes = useMemo(() => Object.entries(Object.groupBy(activeShortcuts(), (each) => each.scope)), []);
  return (
    <Dialog open onClose={onClose} title="Keyboard shortcuts" wide={scopes.length > 1}>
      <div className={cx("grid gap-x-8 gap-y-4", scopes.length > 1 && "sm:grid-cols-2")}>
        {scopes.map(([scope, shortcuts]) => (
          <section key={scope}>
            <h3 className="mb-1 text-[13px] font-semibold text-muted">{scope}</h3>
            <dl>
              {byLabel(shortcuts ?? []).map(([label, all]) => (
                <div key={label} className="flex items-center justify-between gap-4 border-b border-line py-1">
                  <dt>{label}</dt>
                  <dd className="flex shrink-0 gap-1">
                    {all.map((each) => (
                      <Kbd key={each.keys} keys={pretty(each.keys)} />
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <Checkbox
        className="mt-4"
        label="Single-letter shortcuts"
        checked={singleKeys}
        onChange={(event) => setSingleKeys(event.target.checked)}
      />
    </Dialog>
  );
}
