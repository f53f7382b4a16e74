import { plain } from "./rows";
import type { LogLine } from "./types";

export const asText = (lines: LogLine[]) => lines.map((line) => plain(line.text)).join("\n") + (lines.length ? "\n" : "");

export const asNdjson = (lines: LogLine[]) =>
  lines.map((line) => JSON.stringify({ time: line.time, stream: line.stream, group: line.group, text: plain(line.text) })).join("\n") +
  (lines.length ? "\n" : "");

/** A label as part of a file's name. */
export const fileName = (label: string) => label.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "log";
