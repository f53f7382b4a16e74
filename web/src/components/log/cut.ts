import { bytes, plural } from "@/ui/format";

/** What stands where output is missing. */
export const cutText = (lines: number, size: number) =>
  `Output cut: ${lines ? `${plural(lines, "line")} (${bytes(size)})` : bytes(size)} omitted. It came faster than it could be kept.`;
