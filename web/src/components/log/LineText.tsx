import Anser from "anser";
import { type ReactNode, useMemo } from "react";
import { plain } from "./rows";
import "./ansi.css";

interface Piece {
  text: string;
  classes: string;
}

function pieces(text: string): Piece[] {
  if (!text.includes("\u001b")) return [{ text, classes: "" }];
  return Anser.ansiToJson(text, { use_classes: true, remove_empty: true }).map((entry) => ({
    text: plain(entry.content),
    classes: [
      entry.fg && !entry.bg && `${entry.fg}-fg`,
      entry.bg && "ansi-coloured-bg",
      ...entry.decorations.map((each) => `ansi-${each}`),
    ]
      .filter(Boolean)
      .join(" "),
  }));
}

/** Where `needle` stands in `text`, as pairs of beginning and end. */
export function hitsIn(text: string, needle: string): [number, number][] {
  const hits: [number, number][] = [];
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(needle); needle && at >= 0; at = lower.indexOf(needle, at + needle.length))
    hits.push([at, at + needle.length]);
  return hits;
}

const MARK = "rounded-xs bg-warn-soft text-text outline-1 outline-warn";

/** A line with the colours its program gave it, and with what is searched for marked. */
export function LineText({ text, needle }: { text: string; needle: string }) {
  const parsed = useMemo(() => pieces(text), [text]);
  const hits = useMemo(() => (needle ? hitsIn(plain(text), needle.toLowerCase()) : []), [text, needle]);
  let start = 0;
  return parsed.map((piece, index) => {
    const from = start;
    start += piece.text.length;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text have no other name
      <span key={index} className={piece.classes || undefined}>
        {hits.length ? marked(piece.text, from, hits) : piece.text}
      </span>
    );
  });
}

function marked(text: string, offset: number, hits: [number, number][]): ReactNode[] {
  const out: ReactNode[] = [];
  let at = 0;
  for (const [begin, end] of hits) {
    const from = Math.max(0, begin - offset);
    const until = Math.min(text.length, end - offset);
    if (from >= until) continue;
    out.push(text.slice(at, from), <mark key={from} className={MARK}>{text.slice(from, until)}</mark>);
    at = until;
  }
  out.push(text.slice(at));
  return out;
}
