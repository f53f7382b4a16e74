import { ArrowDown, ArrowUp, Columns2, Files, Pilcrow, Rows2, WrapText } from "lucide-react";
import type { ReactNode } from "react";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/classes";
import { plural } from "@/ui/format";
import { Counts } from "./DiffFile";
import type { PatchFile } from "./patch";
import { prefer, usePreferences, useRoomForSplit } from "./preferences";

const ON = "!bg-accent-soft !text-accent";

export function DiffToolbar({ files, viewedCount, tree, onTree, onStep, children }: {
  files: PatchFile[];
  viewedCount: number;
  /** Whether the list of files is shown in a narrow pane. */
  tree: boolean;
  onTree: () => void;
  onStep: (by: 1 | -1) => void;
  children?: ReactNode;
}) {
  const { view, wrap, ignoreSpace } = usePreferences();
  const room = useRoomForSplit();
  const sum = (of: "additions" | "deletions") => files.reduce((total, file) => total + file[of], 0);
  return (
    <div role="toolbar" aria-label="Diff" className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-panel px-3 py-1.5">
      <span className="inline-flex items-center gap-2 whitespace-nowrap">
        <IconButton label="Changed files" small aria-pressed={tree} className={cx("@3xl:!hidden", tree && ON)} onClick={onTree}>
          <Files aria-hidden className="size-4" />
        </IconButton>
        {plural(files.length, "file")} <Counts additions={sum("additions")} deletions={sum("deletions")} />
      </span>
      <span className="text-[13px] whitespace-nowrap text-muted">
        {viewedCount} of {files.length} viewed
      </span>
      {children}
      <span className="ml-auto inline-flex items-center gap-0.5">
        <IconButton label="Previous change" small onClick={() => onStep(-1)}>
          <ArrowUp aria-hidden className="size-4" />
        </IconButton>
        <IconButton label="Next change" small onClick={() => onStep(1)}>
          <ArrowDown aria-hidden className="size-4" />
        </IconButton>
        {room && (
          <IconButton
            label={view === "split" ? "Show in one column" : "Show side by side"}
            small
            onClick={() => prefer({ view: view === "split" ? "unified" : "split" })}
          >
            {view === "split" ? <Rows2 aria-hidden className="size-4" /> : <Columns2 aria-hidden className="size-4" />}
          </IconButton>
        )}
        <IconButton label="Wrap long lines" small aria-pressed={wrap} className={cx(wrap && ON)} onClick={() => prefer({ wrap: !wrap })}>
          <WrapText aria-hidden className="size-4" />
        </IconButton>
        <IconButton
          label="Ignore white space"
          small
          aria-pressed={ignoreSpace}
          className={cx(ignoreSpace && ON)}
          onClick={() => prefer({ ignoreSpace: !ignoreSpace })}
        >
          <Pilcrow aria-hidden className="size-4" />
        </IconButton>
      </span>
    </div>
  );
}
