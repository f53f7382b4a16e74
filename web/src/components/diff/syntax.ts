// Colours of code: which language a file is in, and the words of its lines. The grammars are loaded with the first
// file that needs one; until then, and in what is too large, code has no colours.
import { useEffect, useMemo, useState } from "react";
import { type HunkData, type HunkTokens, markEdits, tokenize } from "react-diff-view";
import type { PatchFile } from "./patch";

const LANGUAGES = {
  bash: ["sh", "bash", "zsh"],
  cpp: ["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx"],
  css: ["css", "scss", "less"],
  dockerfile: ["dockerfile"],
  go: ["go"],
  ini: ["ini", "toml", "cfg", "conf"],
  java: ["java", "kt"],
  javascript: ["js", "jsx", "mjs", "cjs"],
  json: ["json", "jsonl", "ndjson"],
  makefile: ["makefile", "mk"],
  markdown: ["md", "markdown"],
  python: ["py", "pyi"],
  ruby: ["rb", "rake", "gemfile"],
  rust: ["rs"],
  sql: ["sql"],
  typescript: ["ts", "tsx", "mts", "cts"],
  xml: ["html", "htm", "xml", "svg", "vue"],
  yaml: ["yaml", "yml"],
} as const;

export type Language = keyof typeof LANGUAGES;
type Grammars = typeof import("./grammars");

const BY_ENDING = new Map(Object.entries(LANGUAGES).flatMap(([language, endings]) => endings.map((ending) => [ending as string, language as Language])));

/** By the end of its name, or by the whole of it ("Makefile"). */
export const languageOf = (path: string) => BY_ENDING.get(/[^/.]*$/.exec(path)![0].toLowerCase());

// Words that differ and colours cost more than they help in what is huge.
const MAX_LINES = 2000;
const MAX_LENGTH = 200_000;

let grammars: Grammars | null = null;

function useGrammars(wanted: boolean): Grammars | null {
  const [loaded, setLoaded] = useState(grammars);
  useEffect(() => {
    if (!wanted || loaded) return;
    let stale = false;
    // If it cannot be loaded, code stays without colours.
    import("./grammars").then(
      (module) => {
        grammars = module;
        if (!stale) setLoaded(module);
      },
      () => {},
    );
    return () => {
      stale = true;
    };
  }, [wanted, loaded]);
  return loaded;
}

/** The lines of a file, cut into words: their colours, and what differs between two versions of a line. */
export function useTokens(file: PatchFile, hunks: HunkData[]): HunkTokens | null {
  const small = file.lines <= MAX_LINES && file.body.length <= MAX_LENGTH && hunks.length > 0;
  const language = small ? languageOf(file.path) : undefined;
  const loaded = useGrammars(language !== undefined);
  return useMemo(() => {
    if (!small) return null;
    const enhancers = [markEdits(hunks, { type: "block" })];
    return language && loaded ? tokenize(hunks, { highlight: true, refractor: loaded as never, language, enhancers }) : tokenize(hunks, { enhancers });
  }, [small, hunks, language, loaded]);
}
