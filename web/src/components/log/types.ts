export interface LogLine {
  /** Grows from line to line. */
  id: number;
  time: string;
  stream: "stdout" | "stderr" | "system";
  text: string;
  /** The id of its group. */
  group?: string;
  /** It says that output is missing here. */
  cut?: boolean;
}

/** What of a log is not loaded, and how to get there. Places are ids of lines. */
export interface Beyond {
  /** The first place that is loaded; 0 = the log is loaded from its beginning. */
  from: number;
  /** The last one; Infinity = it is loaded to its end. */
  until: number;
  /** Something is being loaded. */
  busy: boolean;
  /** Another one when lines were put before or in place of others. */
  version: number;
  earlier: () => void;
  later: () => void;
  /** Loads the part with this place, in place of what is loaded. */
  around: (place: number) => void;
  latest: () => void;
  /** Finds a text in the whole log and tells the places as they are found, in order. True if there are more than
   * it tells. */
  search: (text: string, stream: StreamFilter, tell: (places: number[]) => void, signal: AbortSignal) => Promise<boolean>;
  /** Where the whole log is, as a text. */
  fullText: string;
}

export interface LogGroup {
  id: string;
  title: string;
  state: "running" | "done" | "failed";
  startedAt?: string;
  finishedAt?: string | null;
  exitCode?: number;
}

export type StreamFilter = "all" | LogLine["stream"];
export type Times = "off" | "relative" | "absolute";
