// Lines of output, grouped by command or step. Only what is in sight is in the document.
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDownToLine, ScrollText } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useShortcuts } from "@/shell/shortcuts";
import { cx } from "@/ui/classes";
import { plural } from "@/ui/format";
import { COARSE, useMedia } from "@/ui/media";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { useKept, useUrl } from "@/ui/url";
import { isWhole, useSearchBeyond } from "./log/beyond";
import { EarlierRow, EDGE_PX, LaterRow } from "./log/Edges";
import { useFollow } from "./log/follow";
import { useGroups } from "./log/groups";
import { Hits } from "./log/hits";
import { firstFrom, wantedLine } from "./log/places";
import { usePreferences } from "./log/preferences";
import { GroupRow, LineRow } from "./log/Row";
import { buildRows, failureLine, groupOf } from "./log/rows";
import { useLogSearch } from "./log/search";
import { useSteady } from "./log/steady";
import { Summary } from "./log/Summary";
import { Toolbar } from "./log/Toolbar";
import type { Beyond, LogGroup, LogLine, StreamFilter } from "./log/types";

export type { Beyond, LogGroup, LogLine } from "./log/types";

export interface LogViewerProps {
  /** What it is the log of, for screen readers and for the name of the downloaded file. */
  label: string;
  lines: LogLine[];
  groups?: LogGroup[];
  loading?: boolean;
  error?: Error | null;
  onRetry?: () => void;
  /** What to say while there is no line. */
  empty?: string;
  /** What is not in `lines`, if the log may be longer. */
  beyond?: Beyond;
}

const LINE_PX = 20;
const GROUP_PX = 32;
const GROUP_PX_BY_FINGER = 44;
const NONE: LogGroup[] = [];
/** No id of a line. */
const NOWHERE = -1;

export function LogViewer(props: LogViewerProps) {
  const { lines, groups = NONE, loading, error, onRetry, empty = "Nothing was printed yet." } = props;
  if (lines.length === 0 && groups.length === 0) {
    if (error) return <ErrorState error={error} onRetry={onRetry} title="The log could not be loaded" />;
    if (loading) return <SkeletonRows rows={8} height="h-4" />;
    return <EmptyState icon={ScrollText} title={empty} />;
  }
  return <Log {...props} groups={groups} />;
}

function Log({ label, lines, groups, loading, error, beyond }: LogViewerProps & { groups: LogGroup[] }) {
  const box = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const [url, change] = useUrl();
  const stream = (url.stream ?? "all") as StreamFilter;
  const setStream = (value: StreamFilter) => change({ stream: value === "all" ? undefined : value });
  const { wrap, times, toggleWrap, nextTimes } = usePreferences();
  const { isOpen, setOpen, setAll, allOpen } = useGroups(groups);
  const [find, setFind] = useState(url.find ?? "");
  useKept("find", find);
  // The hit that the search is at, the line that is marked, and where to go: ids, which stay when lines come before them.
  const [hit, setHit] = useState(NOWHERE);
  const [selected, setSelected] = useState(NOWHERE);
  const [target, setTarget] = useState({ id: NOWHERE }); // one for each time it is asked for
  const [wantedNumber, setWantedNumber] = useState(0);
  const whole = isWhole(beyond);
  const from = beyond?.from ?? 0;
  const until = beyond?.until ?? Number.POSITIVE_INFINITY;
  const near = useLogSearch(lines, find, stream);
  const far = useSearchBeyond(beyond, find, stream);
  const hits = useMemo(() => new Hits(far.places, near.of, near.lines, from, until), [far.places, near, from, until]);

  const { rows, counts } = useMemo(() => buildRows(lines, groups, isOpen, stream), [lines, groups, isOpen, stream]);
  const groupPx = useMedia(COARSE) ? GROUP_PX_BY_FINGER : GROUP_PX;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => (rows[index]! < 0 ? groupPx : LINE_PX),
    getItemKey: useCallback((index: number) => (rows[index]! < 0 ? rows[index]! : (lines[rows[index]!]?.id ?? index)), [rows, lines]),
    overscan: 24,
    scrollMargin: from > 0 ? EDGE_PX : 0,
  });
  const running = groups.length === 0 || groups.some((group) => group.state === "running");
  const { follow, setFollow, onScroll, onWheel } = useFollow(box, virtual.getTotalSize(), running && !wantedLine(location.hash), until === Number.POSITIVE_INFINITY);
  useSteady(box, virtual, rows, lines, beyond?.version ?? 0, !follow);
  // New is what came while the reader looked elsewhere.
  const seen = useRef(NOWHERE);
  const placed = useRef(false);
  if (follow || !placed.current) seen.current = lines.at(-1)?.id ?? NOWHERE;

  const goTo = (id: number) => {
    setFollow(false);
    setTarget({ id });
  };
  const asked = useRef(target);
  // What is not loaded comes later, and a row that was folded exists one render later.
  useEffect(() => {
    if (target.id === NOWHERE) return;
    if (target.id < from || target.id > until) {
      // Once for each: a part that cannot be loaded is not asked for again and again.
      if (beyond?.busy || asked.current === target) return;
      asked.current = target;
      return beyond?.around(target.id);
    }
    const line = Math.min(firstFrom(lines, target.id), lines.length - 1);
    const group = lines[line]?.group;
    if (group !== undefined) setOpen(group, true);
    const row = rows.indexOf(line);
    if (row < 0) return;
    virtual.scrollToIndex(row, { align: "center" });
    setTarget({ id: NOWHERE });
  }, [target, rows, lines, from, until, beyond, virtual, setOpen]);

  // Once, when everything is there: to the line of the address, else to what failed.
  useEffect(() => {
    if (placed.current || loading || lines.length === 0) return;
    placed.current = true;
    const wanted = wantedLine(location.hash);
    const broken = groups.find((group) => group.state === "failed");
    if (wanted && "id" in wanted) {
      setSelected(wanted.id);
      goTo(wanted.id);
    } else if (wanted) {
      setWantedNumber(wanted.number);
      if (from > 0) beyond?.around(0);
    } else if (!find && broken && failureLine(lines, broken.id) >= 0) goTo(lines[failureLine(lines, broken.id)]!.id);
  });
  // Numbers count from the beginning of the log.
  useEffect(() => {
    const line = from > 0 ? undefined : lines[wantedNumber - 1];
    if (!line) return;
    setWantedNumber(0);
    setSelected(line.id);
    goTo(line.id);
  });

  const at = find ? hits.at(hit) : -1;
  const show = (place: number) => {
    setHit(hits.id(place));
    goTo(hits.id(place));
  };
  const step = (by: 1 | -1) => {
    if (hits.count) show(at < 0 && by < 0 ? hits.count - 1 : (at + by + hits.count) % hits.count);
  };
  const startFind = (text: string) => {
    setFind(text);
    setHit(NOWHERE);
  };
  // The first hit is shown without being asked for; what is loaded already comes first.
  useEffect(() => {
    if (hit !== NOWHERE || !find || hits.count === 0) return;
    if (hits.firstLoaded >= 0) show(hits.firstLoaded);
    else if (!near.searching) show(0);
  });
  const select = useCallback((id: number, address: string) => {
    history.replaceState(history.state, "", `${location.pathname}${location.search}#${address}`);
    setSelected(id);
  }, []);
  useShortcuts([
    { keys: "/", label: "Find in the log", scope: "Logs", run: () => input.current?.select() },
    { keys: "Mod+f", label: "Find in the log", scope: "Logs", run: () => input.current?.select() },
    { keys: "f", label: "Follow", scope: "Logs", run: () => setFollow(!follow) },
    { keys: "w", label: "Wrap long lines", scope: "Logs", run: toggleWrap },
    { keys: "t", label: "Timestamps", scope: "Logs", run: nextTimes },
  ]);

  const items = virtual.getVirtualItems();
  const began = useMemo(() => Date.parse(lines[0]?.time ?? ""), [lines[0]?.time]);
  const fresh = lines.length - firstFrom(lines, seen.current + 1);
  const found = { count: hits.count, searching: near.searching || far.searching, more: far.more, error: far.error };
  return (
    <section aria-label={label} className="relative flex h-full min-h-0 flex-col bg-panel">
      <Toolbar
        {...{ label, lines, find, found, at, stream, wrap, times, input }}
        onFind={startFind}
        onStep={step}
        onStream={setStream}
        onWrap={toggleWrap}
        onTimes={nextTimes}
        allOpen={groups.length ? allOpen : undefined}
        onAll={() => setAll(!allOpen)}
        fullText={whole ? undefined : beyond?.fullText}
      />
      {error && (
        <p role="alert" className="shrink-0 bg-bad-soft px-3 py-1 text-bad">
          {error.message} What is shown may not be all.
        </p>
      )}
      <div
        ref={box}
        role="log"
        aria-label={`Lines of ${label}`}
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable
        tabIndex={0}
        onScroll={onScroll}
        onWheel={onWheel}
        className="min-h-0 flex-1 overflow-auto font-mono text-xs [container-type:inline-size] [overflow-anchor:none] focus-visible:-outline-offset-2"
      >
        {beyond && from > 0 && <EarlierRow beyond={beyond} />}
        <div className="relative min-w-full" style={{ height: virtual.getTotalSize() }}>
          <div className={cx("absolute top-0 left-0 min-w-full", wrap ? "w-full" : "w-max")} style={{ transform: `translateY(${(items[0]?.start ?? 0) - virtual.options.scrollMargin}px)` }}>
            {items.map((item) => {
              const row = rows[item.index]!;
              return (
                <div key={item.key} data-index={item.index} ref={wrap ? virtual.measureElement : undefined}>
                  {row < 0 ? (
                    <GroupRow
                      group={groups[groupOf(row)]!}
                      open={isOpen(groups[groupOf(row)]!)}
                      count={counts[groupOf(row)]!}
                      partial={!whole}
                      onToggle={() => setOpen(groups[groupOf(row)]!.id, !isOpen(groups[groupOf(row)]!))}
                    />
                  ) : (
                    <LineRow
                      line={lines[row]!}
                      number={from > 0 ? null : row + 1}
                      needle={find}
                      selected={selected === lines[row]!.id}
                      current={find !== "" && hit === lines[row]!.id}
                      onSelect={select}
                      {...{ times, began, wrap }}
                    />
                  )}
                </div>
              );
            })}
          </div>
        </div>
        {beyond && until !== Number.POSITIVE_INFINITY && <LaterRow beyond={beyond} />}
      </div>
      {!follow && (fresh > 0 || until !== Number.POSITIVE_INFINITY) && (
        <button
          type="button"
          disabled={until !== Number.POSITIVE_INFINITY && beyond?.busy}
          onClick={() => {
            setFollow(true);
            if (until !== Number.POSITIVE_INFINITY) beyond?.latest();
          }}
          className="absolute bottom-3 left-1/2 flex h-8 -translate-x-1/2 items-center gap-1.5 rounded-full bg-accent px-3 text-[13px] font-medium text-accent-text shadow-float"
        >
          <ArrowDownToLine aria-hidden className="size-4" />
          Jump to latest{fresh > 0 && ` (${plural(fresh, "new line")})`}
        </button>
      )}
      <Summary count={lines.length} />
    </section>
  );
}
