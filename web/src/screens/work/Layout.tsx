import { Link } from "@tanstack/react-router";
import { ChevronLeft } from "lucide-react";
import type { ReactNode } from "react";
import { useShortcuts } from "@/shell/shortcuts";
import { Splitter } from "@/ui/splitter";
import type { Tab } from "@/ui/tabs";
import { ConnectionBanner } from "./Banner";
import { useMedia } from "@/ui/media";
import { useUrl } from "@/ui/url";
import { Part, TerminalDrawer, WorkTabs } from "./tabs";

/** Room for three zones side by side. */
export const THREE_ZONES = "(min-width: 1180px)";

interface Props {
  head: ReactNode;
  centre: ReactNode;
  tabs: Tab[];
  /** Of the terminals; null = there is none that runs. */
  sandboxId: string | null;
  /** What to show in place of a terminal then. */
  noTerminal: ReactNode;
}

/** Centre and tabs side by side, or all as tabs on a small screen; terminals in a drawer below. */
export function Layout({ head, centre, tabs, sandboxId, noTerminal }: Props) {
  const wide = useMedia(THREE_ZONES);
  const [search, change] = useUrl();
  const open = search.drawer === "open";
  const toggle = () => change({ drawer: open ? undefined : "open" });
  useShortcuts([{ keys: "Mod+`", label: "Terminal", scope: "Agent work", inFields: true, run: toggle }]);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="min-h-0 flex-1">
        {wide ? (
          <Splitter
            name="activity"
            initial={50}
            left={
              <div className="flex h-full min-h-0 flex-col">
                <ConnectionBanner />
                {head}
                <div className="min-h-0 flex-1">{centre}</div>
              </div>
            }
            right={<div className="h-full bg-panel">{<WorkTabs tabs={tabs} />}</div>}
          />
        ) : (
          <div className="flex h-full min-h-0 flex-col">
            <ConnectionBanner />
            <Link to="/work" search={{ list: "all" }} className="flex h-8 shrink-0 items-center gap-1 px-3 text-[13px] text-muted hover:text-text">
              <ChevronLeft aria-hidden className="size-4" /> All work
            </Link>
            {head}
            <div className="min-h-0 flex-1">
              <WorkTabs tabs={[{ id: "activity", label: "Activity", content: centre }, ...tabs]} />
            </div>
          </div>
        )}
      </div>
      {open &&
        (sandboxId ? (
          <Part>
            <TerminalDrawer sandboxId={sandboxId} onClose={toggle} />
          </Part>
        ) : (
          <section aria-label="Terminal" className="max-h-72 shrink-0 overflow-y-auto border-t border-line bg-panel">
            {noTerminal}
          </section>
        ))}
    </div>
  );
}
