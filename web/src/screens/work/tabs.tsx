import { type ReactNode, Suspense } from "react";
import { ErrorBoundary } from "@/shell/ErrorBoundary";
import { useShortcuts } from "@/shell/shortcuts";
import { lazily } from "@/ui/lazily";
import { SkeletonRows } from "@/ui/states";
import { type Tab, Tabs } from "@/ui/tabs";
import { useUrl } from "@/ui/url";

export const Changes = lazily(() => import("@/components/Changes").then((module) => ({ default: module.Changes })));
export const DiffView = lazily(() => import("@/components/Changes").then((module) => ({ default: module.DiffView })));
export const Files = lazily(() => import("@/components/Files").then((module) => ({ default: module.Files })));
export const Preview = lazily(() => import("@/components/Preview").then((module) => ({ default: module.Preview })));
export const TerminalDrawer = lazily(() => import("@/components/TerminalDrawer").then((module) => ({ default: module.TerminalDrawer })));

/** A part that is loaded when it is first shown; if it breaks, the rest stays. */
export function Part({ children }: { children: ReactNode }) {
  return (
    <ErrorBoundary>
      <Suspense fallback={<SkeletonRows />}>{children}</Suspense>
    </ErrorBoundary>
  );
}

/** The tabs of the work, chosen by the address; `[` and `]` go from one to the next. */
export function WorkTabs({ tabs }: { tabs: Tab[] }) {
  const [search, change] = useUrl();
  const value = tabs.some((tab) => tab.id === search.tab) ? search.tab! : tabs[0]!.id;
  const move = (by: number) => {
    const at = tabs.findIndex((tab) => tab.id === value);
    change({ tab: tabs[(at + by + tabs.length) % tabs.length]!.id });
  };
  useShortcuts([
    { keys: "[", label: "Previous tab", scope: "Agent work", run: () => move(-1) },
    { keys: "]", label: "Next tab", scope: "Agent work", run: () => move(1) },
  ]);
  return <Tabs fill label="Views of the work" tabs={tabs} value={value} onChange={(tab) => change({ tab })} />;
}
