import { Suspense } from "react";
import { lazily } from "@/ui/lazily";

const Markdown = lazily(() => import("./Markdown"));

// What none of these is in needs no reader of Markdown.
const MARKS = /[*_`#[<>|~&\\]|\n|^\s*[-+]|^\d+[.)]|https?:/;

/** Markdown once its reader is loaded; the plain text until then. */
export function Prose({ text }: { text: string }) {
  if (!MARKS.test(text.trim())) return <p className="break-words">{text}</p>;
  return (
    <Suspense fallback={<p className="break-words whitespace-pre-wrap">{text}</p>}>
      <Markdown text={text} />
    </Suspense>
  );
}
