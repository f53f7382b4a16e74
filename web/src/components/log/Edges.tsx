import { ArrowDown, ArrowUp, Download } from "lucide-react";
import { Button } from "@/ui/button";
import type { Beyond } from "./types";

export const EDGE_PX = 44;
const ROW = "sticky left-0 flex h-11 w-[100cqw] items-center gap-2 overflow-hidden bg-sunken px-2 font-sans text-[13px] text-muted";

/** The first row of a log whose beginning is not loaded. */
export function EarlierRow({ beyond }: { beyond: Beyond }) {
  return (
    <div className={`${ROW} border-b border-line`}>
      <Button small busy={beyond.busy} icon={<ArrowUp aria-hidden className="size-4" />} onClick={beyond.earlier}>
        Load earlier
      </Button>
      <span className="hidden truncate @md:inline">Earlier output is not loaded.</span>
      <a href={beyond.fullText} download className="ml-auto inline-flex h-7 items-center gap-1.5 rounded-md px-2 font-medium whitespace-nowrap text-accent hover:bg-hover">
        <Download aria-hidden className="size-4" />
        Download full
      </a>
    </div>
  );
}

/** The last row of a part that does not reach the end. */
export function LaterRow({ beyond }: { beyond: Beyond }) {
  return (
    <div className={`${ROW} border-t border-line`}>
      <Button small busy={beyond.busy} icon={<ArrowDown aria-hidden className="size-4" />} onClick={beyond.later}>
        Load later
      </Button>
    </div>
  );
}
