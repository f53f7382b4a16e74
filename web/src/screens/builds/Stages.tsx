import { CircleCheck, CircleDashed, CircleX, LoaderCircle } from "lucide-react";
import { cx } from "@/ui/classes";
import type { StageState, StageView } from "./stages";
import { inWords } from "./stages";

const LOOKS: Record<StageState, { icon: typeof CircleCheck; tone: string; word: string }> = {
  done: { icon: CircleCheck, tone: "text-ok", word: "done" },
  running: { icon: LoaderCircle, tone: "text-info", word: "under way" },
  failed: { icon: CircleX, tone: "text-bad", word: "failed" },
  pending: { icon: CircleDashed, tone: "text-muted", word: "not yet" },
};

/** The stages as a bar in plain words. */
export function Stages({ stages }: { stages: StageView[] }) {
  return (
    <ol aria-label="Stages" tabIndex={0} className="flex items-center gap-1 overflow-x-auto px-4 pb-3">
      {stages.map((stage, index) => {
        const look = LOOKS[stage.state];
        return (
          <li key={stage.id} className="flex flex-1 items-center gap-1.5 last:flex-none" aria-current={stage.state === "running" ? "step" : undefined}>
            <look.icon aria-label={look.word} className={cx("size-4 shrink-0", look.tone, stage.state === "running" && "animate-spin")} />
            <span className={cx("text-[13px] whitespace-nowrap", stage.state === "pending" ? "text-muted" : "font-medium")}>{stage.label}</span>
            {stage.took >= 100 && <span className="text-xs whitespace-nowrap text-muted tabular-nums">{inWords(stage.took / 1000)}</span>}
            {index < stages.length - 1 && <span aria-hidden className={cx("h-px min-w-3 flex-1", stage.state === "done" ? "bg-ok/60" : "bg-line")} />}
          </li>
        );
      })}
    </ol>
  );
}
