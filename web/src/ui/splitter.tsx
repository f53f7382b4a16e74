import { type ReactNode, useRef, useState } from "react";

/** Two panes with a border that can be moved by mouse, touch and arrow keys; its place is remembered. */
export function Splitter({ name, left, right, initial = 50, min = 20, max = 80 }: {
  name: string;
  left: ReactNode;
  right: ReactNode;
  /** Percent of the left pane. */
  initial?: number;
  min?: number;
  max?: number;
}) {
  const storage = `caisson-split-${name}`;
  const [percent, setPercent] = useState(() => Number(localStorage.getItem(storage)) || initial);
  const box = useRef<HTMLDivElement>(null);
  const move = (value: number) => {
    const kept = Math.min(max, Math.max(min, value));
    setPercent(kept);
    localStorage.setItem(storage, String(kept));
  };
  return (
    <div ref={box} className="flex h-full min-h-0 w-full">
      <div className="min-w-0 overflow-hidden" style={{ width: `${percent}%` }}>
        {left}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a separator that can be moved is no hr */}
      <div
        role="separator"
        aria-orientation="vertical"
        aria-label={`Width of the ${name} pane`}
        aria-valuenow={Math.round(percent)}
        aria-valuemin={min}
        aria-valuemax={max}
        tabIndex={0}
        className="w-1 shrink-0 cursor-col-resize touch-none bg-line hover:bg-accent focus-visible:bg-accent"
        onKeyDown={(event) => {
          if (event.key === "ArrowLeft") move(percent - 2);
          if (event.key === "ArrowRight") move(percent + 2);
        }}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (!event.currentTarget.hasPointerCapture(event.pointerId) || !box.current) return;
          const area = box.current.getBoundingClientRect();
          move(((event.clientX - area.left) / area.width) * 100);
        }}
      />
      <div className="min-w-0 flex-1 overflow-hidden">{right}</div>
    </div>
  );
}
