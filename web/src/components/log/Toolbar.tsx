import { ArrowDown, ArrowUp, ChevronsDownUp, ChevronsUpDown, Clock, Copy, Download, Search, WrapText, X } from "lucide-react";
import type { Ref } from "react";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/classes";
import { copyText } from "@/ui/copy";
import { saveAddress, saveFile } from "@/ui/download";
import { Select } from "@/ui/field";
import { Menu } from "@/ui/menu";
import { done } from "@/ui/toast";
import { asNdjson, asText, fileName } from "./export";
import type { LogLine, StreamFilter, Times } from "./types";

export interface ToolbarProps {
  label: string;
  lines: LogLine[];
  find: string;
  onFind: (text: string) => void;
  found: { count: number; searching: boolean; more: boolean; error: Error | null };
  /** The place among the hits, from 0; -1 = at none. */
  at: number;
  onStep: (by: 1 | -1) => void;
  stream: StreamFilter;
  onStream: (stream: StreamFilter) => void;
  wrap: boolean;
  onWrap: () => void;
  times: Times;
  onTimes: () => void;
  /** Whether all groups are open; undefined = there are none. */
  allOpen?: boolean;
  onAll: () => void;
  input: Ref<HTMLInputElement>;
  /** Where the whole log is, if only a part is loaded. */
  fullText?: string;
}

export function Toolbar(props: ToolbarProps) {
  const { label, lines, stream, wrap, times } = props;
  const loaded = props.fullText ? " (loaded lines)" : "";
  const pressed = (on: boolean) => cx(on && "!bg-accent-soft !text-accent");
  return (
    <div role="toolbar" aria-label={`Tools of ${label}`} className="flex shrink-0 flex-wrap items-center gap-1 border-b border-line px-2 py-1">
      <Find {...props} />
      <Select aria-label="Stream" value={stream} onChange={(event) => props.onStream(event.target.value as StreamFilter)} className="[&>select]:h-7 [&>select]:text-[13px]">
        <option value="all">All output</option>
        <option value="stdout">stdout</option>
        <option value="stderr">stderr</option>
        <option value="system">system</option>
      </Select>
      <span className="ml-auto flex items-center">
        {props.allOpen !== undefined && (
          <IconButton small label={props.allOpen ? "Fold all groups" : "Open all groups"} onClick={props.onAll}>
            {props.allOpen ? <ChevronsDownUp aria-hidden className="size-4" /> : <ChevronsUpDown aria-hidden className="size-4" />}
          </IconButton>
        )}
        <IconButton small label="Wrap long lines (w)" aria-pressed={wrap} className={pressed(wrap)} onClick={props.onWrap}>
          <WrapText aria-hidden className="size-4" />
        </IconButton>
        <IconButton small label={`Timestamps: ${times} (t)`} aria-pressed={times !== "off"} className={pressed(times !== "off")} onClick={props.onTimes}>
          <Clock aria-hidden className="size-4" />
        </IconButton>
        <IconButton small label={props.fullText ? "Copy loaded lines" : "Copy all"} onClick={() => void copyText(asText(lines)).then(() => done(`Copied ${lines.length} lines`))}>
          <Copy aria-hidden className="size-4" />
        </IconButton>
        <Menu
          label="Download"
          trigger={
            <IconButton small label="Download">
              <Download aria-hidden className="size-4" />
            </IconButton>
          }
          items={[
            ...(props.fullText ? [{ label: "Full output as text", onSelect: () => saveAddress(props.fullText!) }, null] : []),
            { label: `As text${loaded}`, onSelect: () => saveFile(`${fileName(label)}.txt`, asText(lines)) },
            { label: `As NDJSON${loaded}`, onSelect: () => saveFile(`${fileName(label)}.ndjson`, asNdjson(lines), "application/x-ndjson") },
          ]}
        />
      </span>
    </div>
  );
}

function Find({ label, find, onFind, found, at, onStep, input }: ToolbarProps) {
  const { count, searching, more, error } = found;
  return (
    <span className="flex min-w-0 items-center">
      <span className="relative">
        <Search aria-hidden className="pointer-events-none absolute top-1/2 left-2 size-4 -translate-y-1/2 text-muted" />
        <input
          ref={input}
          type="search"
          aria-label={`Find in ${label}`}
          placeholder="Find"
          value={find}
          onChange={(event) => onFind(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") onStep(event.shiftKey ? -1 : 1);
            if (event.key === "Escape") {
              onFind("");
              event.currentTarget.blur();
            }
          }}
          className="h-7 w-36 rounded-md border border-line-strong/60 bg-panel pr-2 pl-7 text-[13px] [&::-webkit-search-cancel-button]:hidden"
        />
      </span>
      {find && (
        <>
          <span role="status" className="px-1.5 text-xs whitespace-nowrap text-muted tabular-nums">
            {count ? `${at + 1} of ${count}${more ? "+" : ""}` : searching ? "…" : "none"}
            {count > 0 && searching && "…"}
          </span>
          {error && (
            <span role="alert" className="max-w-60 truncate text-xs text-bad" title={error.message}>
              Only loaded lines: {error.message}
            </span>
          )}
          <IconButton small label="Previous (Shift+Enter)" disabled={!count} onClick={() => onStep(-1)}>
            <ArrowUp aria-hidden className="size-4" />
          </IconButton>
          <IconButton small label="Next (Enter)" disabled={!count} onClick={() => onStep(1)}>
            <ArrowDown aria-hidden className="size-4" />
          </IconButton>
          <IconButton small label="Clear" onClick={() => onFind("")}>
            <X aria-hidden className="size-4" />
          </IconButton>
        </>
      )}
    </span>
  );
}
