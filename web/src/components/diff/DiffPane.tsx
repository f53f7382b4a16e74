// A diff with its list of files. Fills the height of its parent.
import { FileDiff } from "lucide-react";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { useShortcuts } from "@/shell/shortcuts";
import { cx } from "@/ui/classes";
import { plural } from "@/ui/format";
import { EmptyState } from "@/ui/states";
import type { ReadFile } from "./around";
import { DiffFile } from "./DiffFile";
import { placeOf } from "./DiffTable";
import { DiffToolbar } from "./DiffToolbar";
import { FileTree } from "./FileTree";
import { fingerprint, hunksOf, type PatchFile, splitPatch } from "./patch";
import { prefer, usePreferences, useRoomForSplit, viewedStorage } from "./preferences";
import { type Draft, type Place, type Remark, useReview } from "./review";

const NO_DRAFTS: Draft[] = [];
const NO_REMARKS: Remark[] = [];

const byPath = <T extends { path: string }>(items: T[]) => Map.groupBy(items, (item) => item.path);

export interface DiffPaneProps {
  patch: string;
  /** What it is the diff of. */
  label: string;
  /** Comments belong to this review; without one nothing can be commented. Viewed files are remembered under it, or under the label. */
  reviewId?: string;
  remarks?: Remark[];
  /** How the files are read as they are now, to show what the diff leaves out; without it that is not offered. */
  read?: ReadFile;
  /** More controls in the toolbar. */
  tools?: ReactNode;
  footer?: ReactNode;
}

export function DiffPane({ patch, label, reviewId, remarks = NO_REMARKS, read, tools, footer }: DiffPaneProps) {
  const files = useMemo(() => splitPatch(patch), [patch]);
  const preferences = usePreferences();
  const room = useRoomForSplit();
  const view = room ? preferences.view : "unified";
  const { isViewed, setViewed, viewedCount } = useViewed(reviewId ?? label, files);
  const [tree, setTree] = useState(false);
  const [open, setOpen] = useState<Place | null>(null);
  const drafts = useReview(reviewId ?? "");
  const draftsOf = useMemo(() => byPath(drafts), [drafts]);
  const remarksOf = useMemo(() => byPath(remarks), [remarks]);
  const steps = useSteps(files, preferences.ignoreSpace);
  const { target, step, pick } = steps;

  useShortcuts([
    { keys: "n", label: "Next change", scope: "Changes", run: () => step(1) },
    { keys: "p", label: "Previous change", scope: "Changes", run: () => step(-1) },
    { keys: "u", label: "One column or side by side", scope: "Changes", run: () => prefer({ view: preferences.view === "split" ? "unified" : "split" }) },
    ...(reviewId === undefined
      ? []
      : [{ keys: "m", label: "Comment on the change", scope: "Changes", run: () => setOpen(steps.place()) }]),
  ]);

  if (files.length === 0) return <EmptyState icon={FileDiff} title="There is no difference" />;
  return (
    <div className="@container flex h-full min-h-0 flex-col" role="group" aria-label={label}>
      <DiffToolbar files={files} viewedCount={viewedCount} tree={tree} onTree={() => setTree(!tree)} onStep={step}>
        {tools}
      </DiffToolbar>
      <p role="status" className="sr-only">
        {steps.spoken}
      </p>
      <div className="relative flex min-h-0 flex-1">
        <div
          className={cx(
            "w-72 shrink-0 border-r border-line bg-panel @max-3xl:absolute @max-3xl:inset-y-0 @max-3xl:left-0 @max-3xl:z-30 @max-3xl:shadow-float",
            !tree && "@max-3xl:hidden",
          )}
        >
          <FileTree
            files={files}
            viewed={isViewed}
            onPick={(index) => {
              pick(index);
              setTree(false);
            }}
          />
        </div>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys */}
        <div data-diff-list className="min-w-0 flex-1 overflow-y-auto px-3 pb-3 [overflow-anchor:none]" tabIndex={0} role="group" aria-label={plural(files.length, "changed file")}>
          <div className="pt-3">
            {files.map((file, index) => (
              <DiffFile
                key={file.path}
                file={file}
                index={index}
                view={view}
                wrap={preferences.wrap}
                ignoreSpace={preferences.ignoreSpace}
                viewed={isViewed(file)}
                onViewed={setViewed}
                current={target?.file === index ? target.part : null}
                wanted={target?.file === index ? target.count : 0}
                reviewId={reviewId}
                drafts={draftsOf.get(file.path) ?? NO_DRAFTS}
                open={open?.path === file.path ? open : null}
                onOpen={setOpen}
                remarks={remarksOf.get(file.path) ?? NO_REMARKS}
                read={read}
              />
            ))}
          </div>
        </div>
      </div>
      {footer}
    </div>
  );
}

function useViewed(id: string, files: PatchFile[]) {
  const storage = useMemo(() => viewedStorage(id), [id]);
  const [viewed, setAll] = useState(() => storage.read());
  const prints = useMemo(() => new Map(files.map((file) => [file.path, fingerprint(file.body)])), [files]);
  const isViewed = (file: PatchFile) => viewed[file.path] === prints.get(file.path);
  const setViewed = useCallback(
    (path: string, on: boolean) =>
      setAll((before) => {
        const { [path]: _, ...rest } = before;
        const now = on ? { ...rest, [path]: prints.get(path) ?? 0 } : rest;
        storage.write(now);
        return now;
      }),
    [prints, storage],
  );
  return { isViewed, setViewed, viewedCount: files.filter(isViewed).length };
}

interface Part {
  file: number;
  /** `null`: the file has no lines to show. */
  part: number | null;
}

interface Target extends Part {
  /** Grows, so that the same place can be asked for again. */
  count: number;
}

/** Going from change to change through all files. */
function useSteps(files: PatchFile[], ignoreSpace: boolean) {
  const [target, setTarget] = useState<Target | null>(null);
  const places = useMemo(
    () =>
      files.flatMap((file, index): Part[] => {
        const parts = ignoreSpace ? hunksOf(file, true).length : file.parts;
        return parts === 0 ? [{ file: index, part: null }] : Array.from({ length: parts }, (_, part) => ({ file: index, part }));
      }),
    [files, ignoreSpace],
  );
  const at = target ? places.findIndex((place) => place.file === target.file && place.part === target.part) : -1;
  const go = (place: Part | undefined) =>
    place && setTarget((before) => ({ ...place, count: (before?.count ?? 0) + 1 }));
  return {
    target,
    step: (by: 1 | -1) => {
      const from = at >= 0 ? at + by : by > 0 ? places.findIndex((place) => place.file >= (target?.file ?? 0)) : places.length - 1;
      go(places[Math.min(places.length - 1, Math.max(0, from))]);
    },
    pick: (file: number) => go({ file, part: null }),
    spoken: target && at >= 0 ? `Change ${at + 1} of ${places.length}: ${files[target.file]?.path}` : "",
    /** The first changed line of the change one has come to. */
    place: (): Place | null => {
      const { file: index, part } = places[Math.max(0, at)] ?? { file: 0, part: null };
      const file = files[index];
      const change = file && part !== null ? hunksOf(file, ignoreSpace)[part]?.changes.find((each) => each.type !== "normal") : undefined;
      return file && change ? placeOf(file.path, change) : null;
    },
  };
}
