// One file of a diff: its head, and its lines as soon as they come near the window.
import { ChevronDown, ChevronRight, FileDiff, FileMinus, FilePlus, FileSymlink } from "lucide-react";
import { memo, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { CopyButton } from "@/ui/copy";
import { Checkbox } from "@/ui/field";
import type { ReadFile } from "./around";
import { DiffTable, type ReviewOfFile } from "./DiffTable";
import type { FileStatus, PatchFile } from "./patch";
import type { DiffPreferences } from "./preferences";
import type { Draft, Place, Remark } from "./review";

export const FOLD_FROM = 1000;
const LINE_PX = 20;

export const FILE_LOOKS: Record<FileStatus, { word: string; icon: typeof FileDiff; tone: string }> = {
  added: { word: "Added", icon: FilePlus, tone: "text-ok" },
  modified: { word: "Modified", icon: FileDiff, tone: "text-info" },
  deleted: { word: "Deleted", icon: FileMinus, tone: "text-bad" },
  renamed: { word: "Renamed", icon: FileSymlink, tone: "text-violet" },
};

export function Counts({ additions, deletions }: { additions: number; deletions: number }) {
  return (
    <span className="font-mono text-xs whitespace-nowrap tabular-nums">
      <span className="text-ok">+{additions}</span> <span className="text-bad">−{deletions}</span>
    </span>
  );
}

interface Props extends DiffPreferences {
  file: PatchFile;
  index: number;
  viewed: boolean;
  onViewed: (path: string, viewed: boolean) => void;
  /** The part that the keys n and p have come to, if it is one of this file. */
  current: number | null;
  /** Grows when the file shall come into view. */
  wanted: number;
  /** The id of the review that comments belong to; without one nothing can be commented. */
  reviewId?: string;
  drafts: Draft[];
  /** Where the form for a new comment is open, if in this file. */
  open: Place | null;
  onOpen: (place: Place | null) => void;
  remarks: Remark[];
  read?: ReadFile;
}

export const DiffFile = memo(function DiffFile({ file, index, viewed, onViewed, current, wanted, reviewId, drafts, open, onOpen, remarks, read, ...how }: Props) {
  const box = useRef<HTMLElement>(null);
  const [near, setNear] = useState(false);
  const [folded, setFolded] = useState(viewed || file.lines > FOLD_FROM);
  useEffect(() => setFolded((before) => viewed || (before && file.lines > FOLD_FROM)), [viewed, file.lines]);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setNear(true), {
      root: box.current?.closest("[data-diff-list]"),
      rootMargin: "800px 0px",
    });
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!wanted) return;
    setNear(true);
    if (current !== null) setFolded(false);
    // After the lines are there, and once more when what lies above them has its height.
    const scroll = () => {
      const part = current === null ? null : box.current?.querySelector(`[data-part="${current}"]`);
      (part ?? box.current)?.scrollIntoView({ block: part ? "center" : "start" });
    };
    let second = 0;
    const first = requestAnimationFrame(() => {
      scroll();
      second = requestAnimationFrame(scroll);
    });
    return () => {
      cancelAnimationFrame(first);
      cancelAnimationFrame(second);
    };
  }, [wanted, current]);
  const review = useMemo<ReviewOfFile | undefined>(
    () => (reviewId === undefined ? undefined : { id: reviewId, drafts, open, onOpen }),
    [reviewId, drafts, open, onOpen],
  );
  const look = FILE_LOOKS[file.status];
  const name = file.status === "renamed" ? `${file.oldPath} → ${file.path}` : file.path;
  return (
    <section ref={box} id={`file-${index}`} aria-label={file.path} className="mb-3 rounded-lg border border-line bg-panel">
      <header className="sticky top-0 z-20 flex min-h-9 items-center gap-2 rounded-t-lg border-b border-line bg-panel px-2 py-1">
        <Button
          look="ghost"
          small
          aria-expanded={!folded}
          aria-label={`${folded ? "Show" : "Fold"} ${file.path}`}
          className="square !size-7 !px-0"
          onClick={() => setFolded(!folded)}
        >
          {folded ? <ChevronRight aria-hidden className="size-4" /> : <ChevronDown aria-hidden className="size-4" />}
        </Button>
        <look.icon aria-label={look.word} className={cx("size-4 shrink-0", look.tone)} />
        <h2 className="min-w-0 truncate font-mono text-[12.5px]" title={name}>
          {name}
        </h2>
        <CopyButton text={file.path} label={`Copy the path ${file.path}`} />
        <span className="ml-auto flex items-center gap-3">
          <Counts additions={file.additions} deletions={file.deletions} />
          <Checkbox
            label={<span className="hidden text-[13px] sm:inline">Viewed</span>}
            aria-label={`Viewed ${file.path}`}
            className="min-h-6"
            checked={viewed}
            onChange={(event) => onViewed(file.path, event.target.checked)}
          />
        </span>
      </header>
      {!folded && (
        <div className="overflow-hidden rounded-b-lg">
          {file.binary ? (
            <p className="px-4 py-3 text-muted">A binary file. Its content is not shown.</p>
          ) : near ? (
            <DiffTable file={file} {...how} current={current} review={review} remarks={remarks} read={read} />
          ) : (
            <div style={{ height: file.lines * LINE_PX }} />
          )}
        </div>
      )}
      {folded && !viewed && file.lines > FOLD_FROM && (
        <Button look="ghost" className="m-1" onClick={() => setFolded(false)}>
          {file.lines.toLocaleString("en")} lines, show
        </Button>
      )}
    </section>
  );
});
