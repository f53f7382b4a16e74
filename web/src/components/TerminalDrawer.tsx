import { X } from "lucide-react";
import { Suspense, useState } from "react";
import { IconButton } from "@/ui/button";
import { lazily } from "@/ui/lazily";
import { SkeletonRows } from "@/ui/states";

const ShellTabs = lazily(() => import("./terminal/ShellTabs"));

const STORAGE = "caisson-terminal-height";
const MIN = 140;

/** Shells in a sandbox, filling the parent. Their ids are in the URL, so a reload finds them again. */
export function Terminal({ sandboxId }: { sandboxId: string }) {
  return (
    <Suspense fallback={<SkeletonRows rows={3} />}>
      <ShellTabs key={sandboxId} sandboxId={sandboxId} />
    </Suspense>
  );
}

/** The same in a drawer at the bottom, whose height can be changed by mouse, touch and arrow keys. */
export function TerminalDrawer({ sandboxId, onClose }: { sandboxId: string; onClose: () => void }) {
  const [height, setHeight] = useState(() => Number(localStorage.getItem(STORAGE)) || 280);
  const most = Math.round(innerHeight * 0.7);
  const resize = (wanted: number) => {
    const kept = Math.round(Math.min(most, Math.max(MIN, wanted)));
    setHeight(kept);
    localStorage.setItem(STORAGE, String(kept));
  };
  return (
    <div className="flex shrink-0 flex-col border-t border-line bg-panel" style={{ height: Math.min(height, most) }}>
      {/* biome-ignore lint/a11y/useSemanticElements: a separator that can be moved is no hr */}
      <div
        role="separator"
        aria-orientation="horizontal"
        aria-label="Height of the terminal"
        aria-valuenow={height}
        aria-valuemin={MIN}
        aria-valuemax={most}
        tabIndex={0}
        className="h-1 shrink-0 cursor-row-resize touch-none hover:bg-accent focus-visible:bg-accent"
        onKeyDown={(event) => {
          if (event.key === "ArrowUp") resize(height + 20);
          if (event.key === "ArrowDown") resize(height - 20);
        }}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId))
            resize(event.currentTarget.parentElement!.getBoundingClientRect().bottom - event.clientY);
        }}
      />
      <div className="min-h-0 flex-1">
        <Suspense fallback={<SkeletonRows rows={3} />}>
          <ShellTabs
            key={sandboxId}
            sandboxId={sandboxId}
            actions={
              <IconButton label="Close the terminal" small onClick={onClose}>
                <X aria-hidden className="size-4" />
              </IconButton>
            }
          />
        </Suspense>
      </div>
    </div>
  );
}
