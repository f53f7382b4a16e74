import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, lazy, useEffect } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { startLive } from "@/live/store";
import { Sheet } from "@/ui/dialog";
import { SkeletonRows } from "@/ui/states";
import { ErrorBoundary } from "./ErrorBoundary";
import { PLACES } from "./navigation";
import { useNotices } from "./notices";
import { Rail } from "./Rail";
import { useShortcuts } from "./shortcuts";
import { useShell } from "./state";
import { TopBar } from "./TopBar";

const Palette = lazy(() => import("./Palette"));
const ShortcutHelp = lazy(() => import("./ShortcutHelp"));
const CreateTaskDialog = lazy(() => import("@/screens/board/CreateTaskDialog"));

function useGlobalShortcuts() {
  const navigate = useNavigate();
  useShortcuts([
    { keys: "Mod+k", label: "Commands", scope: "Anywhere", inFields: true, run: () => useShell.setState({ palette: true }) },
    { keys: "?", label: "This help", scope: "Anywhere", run: () => useShell.setState({ help: true }) },
    { keys: "c", label: "New task", scope: "Anywhere", run: () => useShell.setState({ newTask: true }) },
    ...PLACES.filter((place) => place.key).map((place) => ({
      keys: `g ${place.key}`,
      label: `Go to ${place.label}`,
      scope: "Anywhere",
      run: () => void navigate({ to: place.to }),
    })),
  ]);
}

/** The frame of every screen of a signed-in user. */
export function Shell() {
  const queries = useQueryClient();
  // Not `location`: that is the next one already while the old screen still stands.
  const place = useRouterState({ select: (state) => state.resolvedLocation?.pathname ?? "" });
  const { palette, help, drawer, newTask } = useShell();
  useEffect(() => startLive(queries), [queries]);
  useGlobalShortcuts();
  useNotices();
  return (
    <div className="flex h-full flex-col">
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-panel focus:p-2">
        Skip to the content
      </a>
      <TopBar />
      <div className="flex min-h-0 flex-1">
        <div className="hidden w-48 shrink-0 overflow-y-auto border-r border-line bg-panel lg:block">
          <Rail />
        </div>
        <main id="content" tabIndex={0} className="min-w-0 flex-1 overflow-y-auto outline-none">
          <ErrorBoundary place={place}>
            <Suspense fallback={<SkeletonRows />}>
              <Outlet />
            </Suspense>
          </ErrorBoundary>
        </main>
      </div>
      <Sheet open={drawer} onClose={() => useShell.setState({ drawer: false })} title="Caisson">
        <Rail onNavigate={() => useShell.setState({ drawer: false })} />
      </Sheet>
      <Suspense>
        {palette && <Palette onClose={() => useShell.setState({ palette: false })} />}
        {help && <ShortcutHelp onClose={() => useShell.setState({ help: false })} />}
        {newTask && <CreateTaskDialog onClose={() => useShell.setState({ newTask: false })} />}
      </Suspense>
    </div>
  );
}
