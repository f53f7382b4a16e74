// The lines of one file.
import { Plus } from "lucide-react";
import { Fragment, type ReactNode, useMemo } from "react";
import {
  type ChangeData,
  Decoration,
  Diff,
  type DiffType,
  findChangeByNewLineNumber,
  findChangeByOldLineNumber,
  getChangeKey,
  Hunk,
  type HunkData,
} from "react-diff-view";
import { cx } from "@/ui/classes";
import { hiddenIn, type ReadFile, useAround } from "./around";
import { CommentForm, DraftCard, RemarkCard } from "./Comments";
import "./diff.css";
import { PartHead } from "./PartHead";
import { hunksOf, type PatchFile } from "./patch";
import { addDraft, type Draft, type Place, type Remark } from "./review";
import { useTokens } from "./syntax";

const TYPES: Record<PatchFile["status"], DiffType> = { added: "add", deleted: "delete", modified: "modify", renamed: "rename" };

export interface ReviewOfFile {
  id: string;
  drafts: Draft[];
  /** Where the form for a new comment is open. */
  open: Place | null;
  onOpen: (place: Place | null) => void;
}

export function placeOf(path: string, change: ChangeData, side?: "old" | "new"): Place {
  if (change.type === "delete") return { path, side: "LEFT", line: change.lineNumber };
  if (change.type === "insert") return { path, side: "RIGHT", line: change.lineNumber };
  return side === "old" ? { path, side: "LEFT", line: change.oldLineNumber } : { path, side: "RIGHT", line: change.newLineNumber };
}

const changeAt = (hunks: HunkData[], side: Place["side"], line: number) =>
  side === "LEFT" ? findChangeByOldLineNumber(hunks, line) : findChangeByNewLineNumber(hunks, line);

/** Remarks at lines that the diff does not show stand above it. */
export function DiffTable({ file, view, wrap, ignoreSpace, current, review, remarks, read }: {
  file: PatchFile;
  view: "unified" | "split";
  wrap: boolean;
  ignoreSpace: boolean;
  current: number | null;
  review?: ReviewOfFile;
  remarks: Remark[];
  /** How the whole file is read, if it can be. */
  read?: ReadFile;
}) {
  const hunks = useMemo(() => hunksOf(file, ignoreSpace), [file, ignoreSpace]);
  const whole = file.status === "added" || file.status === "deleted";
  const { gaps, busy, open } = useAround(file.path, hunks, whole ? undefined : read);
  const all = useMemo(() => gaps.flatMap(({ above, below }, index) => [above, below, hunks[index]].filter((hunk) => !!hunk)), [gaps, hunks]);
  const tokens = useTokens(file, all);
  const { widgets, elsewhere } = useMemo(() => placeComments(all, remarks, review), [all, remarks, review]);
  if (hunks.length === 0)
    return (
      <p className="px-4 py-3 text-muted">
        {ignoreSpace && file.parts > 0 ? "Only white space changed." : "The content did not change."}
      </p>
    );
  return (
    <>
      {elsewhere}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys */}
      <div className={cx(!wrap && "diff-unwrapped overflow-x-auto")} {...(wrap ? {} : { tabIndex: 0, role: "group", "aria-label": `Lines of ${file.path}` })}>
        <Diff
          viewType={view}
          diffType={TYPES[file.status]}
          hunks={all}
          tokens={tokens}
          widgets={widgets}
          optimizeSelection
          gutterEvents={review && { onClick: ({ change, side }) => change && inDiff(hunks, change) && review.onOpen(placeOf(file.path, change, side)) }}
          renderGutter={({ change, side, inHoverState, renderDefault }) =>
            review && inHoverState && isOwnSide(change, side) && inDiff(hunks, change) ? (
              <button
                type="button"
                tabIndex={-1}
                aria-label={`Comment on line ${placeOf(file.path, change, side).line}`}
                className="dense absolute -top-0.5 right-0 z-10 grid size-6 place-items-center rounded bg-accent text-accent-text"
              >
                <Plus aria-hidden className="size-3.5" />
              </button>
            ) : (
              renderDefault()
            )
          }
        >
          {() =>
            gaps.map((gap, index) => {
              const hunk = hunks[index];
              return (
                <Fragment key={hunk?.content ?? "end"}>
                  {gap.above && <Hunk hunk={gap.above} />}
                  {(hunk || (open && hiddenIn(gap) > 0)) && (
                    <Decoration>
                      <PartHead
                        {...{ gap, busy }}
                        first={index === 0}
                        text={hunk?.content}
                        part={hunk && index}
                        current={hunk && index === current}
                        onOpen={open && ((top, bottom) => void open(index, top, bottom))}
                      />
                    </Decoration>
                  )}
                  {gap.below && <Hunk hunk={gap.below} />}
                  {hunk && <Hunk hunk={hunk} />}
                </Fragment>
              );
            })
          }
        </Diff>
      </div>
      {file.cut && <p className="border-t border-line px-4 py-2 text-muted">The rest of this file is not shown.</p>}
    </>
  );
}

/** The gutter in which the button stands: a line that was taken away has a number only on the left. */
const isOwnSide = (change: ChangeData, side: "old" | "new") => (change.type === "delete" ? side === "old" : side === "new");

/** Only lines of the diff itself can be commented at GitHub. */
const inDiff = (hunks: HunkData[], change: ChangeData) => hunks.some((hunk) => hunk.changes.includes(change));

function placeComments(hunks: HunkData[], remarks: Remark[], review?: ReviewOfFile) {
  const byLine = new Map<string, ReactNode[]>();
  const elsewhere: ReactNode[] = [];
  const put = (side: Place["side"], line: number, node: ReactNode) => {
    const change = line > 0 ? changeAt(hunks, side, line) : undefined;
    if (!change) return void elsewhere.push(node);
    const key = getChangeKey(change);
    byLine.set(key, [...(byLine.get(key) ?? []), node]);
  };
  for (const remark of remarks) put("RIGHT", remark.line, <RemarkCard key={`r${remark.id}`} remark={remark} />);
  for (const draft of review?.drafts ?? [])
    put(draft.side, draft.line, <DraftCard key={`d${draft.id}`} review={review!.id} draft={draft} />);
  const open = review?.open;
  if (review && open) {
    const change = changeAt(hunks, open.side, open.line);
    put(
      open.side,
      open.line,
      <CommentForm
        key="form"
        label={`Comment on ${open.path}:${open.line}`}
        onSave={(text) => {
          addDraft(review.id, { ...open, quote: change?.content ?? "", text });
          review.onOpen(null);
        }}
        onClose={() => review.onOpen(null)}
      />,
    );
  }
  const widgets = Object.fromEntries([...byLine].map(([key, nodes]) => [key, <div key={key}>{nodes}</div>]));
  return { widgets, elsewhere: elsewhere.length > 0 && <div className="border-b border-line">{elsewhere}</div> };
}
