// All events about one thing, without a hole and without one twice: the history by pages, then what the
// page's stream brings. Of output, which can be endless, only a part is held: the newest, or the part that
// the reader went to.
import { useEffect, useState } from "react";
import { api, data } from "@/api/client";
import { onLive } from "./store";
import type { LiveEvent } from "./stream";

export interface EventFilter {
  task_id?: string;
  execution_id?: string;
  sandbox_id?: string;
  session_id?: string;
  build_id?: string;
  run_id?: string;
}

/** Which output is here: that of the events `from` to `until`, both included. */
export interface OutputPart {
  /** 0 = from the first on. */
  from: number;
  /** Infinity = to the newest, and what comes. */
  until: number;
  /** Another part is on its way. */
  busy: boolean;
  earlier: () => void;
  later: () => void;
  /** What was printed around this event, in place of what is here. */
  around: (event: number) => void;
  latest: () => void;
}

export interface EventLog {
  events: LiveEvent[];
  loading: boolean;
  error: Error | null;
  /** Reads what is missing now, without waiting for the next attempt. */
  retry: () => void;
  /** Another one when the part of output has changed by more than what came at its end. */
  version: number;
  output: OutputPart;
}

const OUTPUT = "command_output";
/** As many as the server gives at once, and as many pieces of output as one part has, */
const PAGE = 1000;
/** or so much text: about 100,000 lines of 40 characters. */
const PART_CHARS = 4_000_000;
/** A piece has up to 32 KiB, so first a few are asked for. */
const FEW = 100;
const BATCH_MS = 100;
const RETRY_MS = 5000;

function matches(event: LiveEvent, filter: EventFilter): boolean {
  return Object.entries(filter).every(([field, value]) => !value || event[field] === value);
}

/** Two lists in the order of their ids, as one. */
export function merged(one: LiveEvent[], other: LiveEvent[]): LiveEvent[] {
  const all: LiveEvent[] = [];
  let at = 0;
  for (const event of one) {
    while (at < other.length && other[at]!.id < event.id) all.push(other[at++]!);
    all.push(event);
  }
  for (; at < other.length; at += 1) all.push(other[at]!);
  return all;
}

const nothing = () => {};
const WHOLE: OutputPart = { from: 0, until: Number.POSITIVE_INFINITY, busy: false, earlier: nothing, later: nothing, around: nothing, latest: nothing };
const EMPTY: EventLog = { events: [], loading: true, error: null, retry: nothing, version: 0, output: WHOLE };

/** `null` = about nothing: an empty log. At most `keep` events of output are held. */
export function useEventLog(filter: EventFilter | null, keep = 150_000): EventLog {
  const [log, setLog] = useState<EventLog>(EMPTY);
  const name = JSON.stringify(filter);
  useEffect(() => {
    const wanted = JSON.parse(name) as EventFilter | null;
    setLog({ ...EMPTY, loading: wanted !== null });
    if (!wanted) return;
    const reader = new LogReader(wanted, keep, setLog);
    return () => reader.close();
  }, [name, keep]);
  return log;
}

const charsOf = (events: LiveEvent[]) => events.reduce((sum, event) => sum + String(event.output ?? "").length, 0);

interface Query {
  after?: number;
  before?: number;
  type?: string;
  not_type?: string;
  limit?: number;
}

export class LogReader {
  private notes: LiveEvent[] = [];
  private output: LiveEvent[] = [];
  private all: LiveEvent[] = [];
  private early: LiveEvent[] = [];
  /** Where what is attached to the end goes on. */
  private last = 0;
  private lastNote = 0;
  private lastOutput = 0;
  private part: OutputPart = {
    ...WHOLE,
    earlier: () => void this.change(() => this.loadEarlier()),
    later: () => void this.change(() => this.loadLater()),
    around: (event) => void this.change(() => this.loadAround(event)),
    latest: () => void this.change(() => this.loadLatest()),
  };
  private version = 1;
  private begun = false;
  /** The history is being read; one more time if it was asked for meanwhile. */
  private reading = false;
  private again = false;
  /** Live events follow what is here without a hole. */
  private whole = false;
  private closed = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private readonly stop: () => void;

  constructor(
    private readonly filter: EventFilter,
    private readonly keep: number,
    private readonly show: (log: EventLog) => void,
  ) {
    // Listens before it reads: what the history does not have yet comes by the stream.
    this.stop = onLive(
      (event) => matches(event, filter) && this.live(event),
      () => void this.load(),
    );
    void this.load();
  }

  close() {
    this.closed = true;
    this.stop();
    clearTimeout(this.timer);
    clearTimeout(this.retry);
  }

  private async page(query: Query): Promise<{ events: LiveEvent[]; next?: number; previous?: number }> {
    const page = await data(
      api.GET("/api/v1/events/history", { params: { query: { limit: PAGE, ...this.filter, ...query } as never } }),
    );
    return { ...page, events: page.events as unknown as LiveEvent[] };
  }

  /** Output after or before an event, so much of it as one part has; with `share` 2, half of that. `more`: where it
   * goes on. */
  private async portion(where: { after: number } | { before: number }, share = 1): Promise<{ events: LiveEvent[]; more?: number }> {
    const back = "before" in where;
    let events: LiveEvent[] = [];
    for (let limit = FEW, chars = 0; ; ) {
      const page = await this.page({ type: OUTPUT, limit, ...where });
      events = back ? [...page.events, ...events] : [...events, ...page.events];
      chars += charsOf(page.events);
      const more = back ? page.previous : page.next;
      const left = PART_CHARS / share - chars;
      if (more === undefined || left <= 0 || events.length >= PAGE / share) return { events, more };
      where = back ? { before: more } : { after: more };
      limit = Math.ceil(Math.min(PAGE / share - events.length, Math.max(FEW / 10, (left / (chars + 1)) * events.length)));
    }
  }

  /**
   * Reads what lies behind the last known event; live ones that come meanwhile wait. One reading at a time: an
   * older answer that ended first would let live events pass those that only the newer one brings.
   */
  private async load() {
    this.whole = false;
    this.again = this.reading;
    if (this.reading) return;
    clearTimeout(this.retry);
    this.reading = true;
    let failed: Error | null = null;
    do {
      this.again = false;
      failed = await this.readAll();
      if (this.closed) return;
    } while (this.again);
    this.reading = false;
    this.whole = !failed;
    if (failed) this.retry = setTimeout(() => void this.load(), RETRY_MS);
    else for (const event of this.early.splice(0)) this.add(event);
    this.publish(failed);
  }

  private async readAll(): Promise<Error | null> {
    try {
      if (!this.begun) await this.begin();
      const attached = this.attached();
      for (let after = attached ? this.last : this.lastNote; ; ) {
        this.early = []; // what came before the question is in its answers
        const { events, next } = await this.page({ after, ...(attached ? {} : { not_type: OUTPUT }) });
        if (this.closed) return null;
        if (attached !== this.attached()) {
          this.again = true; // another part of output is here now, which ends elsewhere
          return null;
        }
        for (const event of events) this.add(event);
        this.later();
        if (next === undefined) return null;
        after = next;
      }
    } catch (error) {
      return error as Error;
    }
  }

  /** The newest output, and everything else up to its end. */
  private async begin() {
    const { events, more } = await this.portion({ before: Number.MAX_SAFE_INTEGER });
    const end = events.at(-1)?.id ?? 0;
    const notes: LiveEvent[] = [];
    for (let after: number | undefined = 0; after !== undefined && end > 0; ) {
      const page: { events: LiveEvent[]; next?: number } = await this.page({ after, before: end + 1, not_type: OUTPUT });
      notes.push(...page.events);
      after = page.next;
    }
    if (this.closed) return;
    this.notes = notes;
    this.lastNote = end;
    this.place(events, more ?? 0, Number.POSITIVE_INFINITY);
    this.begun = true;
  }

  private attached = () => this.part.until === Number.POSITIVE_INFINITY;

  /** Holds this output from now on. */
  private place(output: LiveEvent[], from: number, until: number) {
    this.output = output;
    this.lastOutput = output.at(-1)?.id ?? 0;
    this.part = { ...this.part, from, until };
    if (this.attached()) this.last = this.lastOutput;
    this.all = merged(this.notes, output);
    this.version += 1;
  }

  /** One change after the other: what is asked for meanwhile is not done. */
  private async change(work: () => Promise<void>) {
    if (this.part.busy || !this.begun) return;
    this.part = { ...this.part, busy: true };
    this.publish(null);
    let problem: Error | null = null;
    try {
      await work();
    } catch (error) {
      problem = error as Error;
    }
    this.part = { ...this.part, busy: false };
    if (!this.closed) this.publish(problem);
  }

  private async loadEarlier() {
    const { events, more } = await this.portion({ before: this.part.from });
    this.place([...events, ...this.output], more ?? 0, this.part.until);
  }

  private async loadLater() {
    if (this.attached()) return;
    const { events, more } = await this.portion({ after: this.part.until });
    this.place([...this.output, ...events], this.part.from, more ?? Number.POSITIVE_INFINITY);
    if (this.attached()) await this.load();
  }

  private async loadAround(event: number) {
    const [before, after] = await Promise.all([this.portion({ before: event }, 2), this.portion({ after: Math.max(0, event - 1) }, 2)]);
    this.place([...before.events, ...after.events], before.more ?? 0, after.more ?? Number.POSITIVE_INFINITY);
    if (this.attached()) await this.load();
  }

  private async loadLatest() {
    const { events, more } = await this.portion({ before: Number.MAX_SAFE_INTEGER });
    this.place(events, more ?? 0, Number.POSITIVE_INFINITY);
    await this.load();
  }

  private live(event: LiveEvent) {
    if (this.whole) {
      this.add(event);
      this.later();
    } else if (this.reading) this.early.push(event);
    // Else the next attempt to read brings it.
  }

  private add(event: LiveEvent) {
    if (event.type !== OUTPUT) {
      if (event.id <= this.lastNote) return;
      this.lastNote = event.id;
      this.notes.push(event);
    } else {
      if (event.id <= this.lastOutput || !this.attached()) return;
      this.lastOutput = event.id;
      this.output.push(event);
    }
    this.last = event.id;
    this.all.push(event);
  }

  private later() {
    this.timer ??= setTimeout(() => this.publish(null), BATCH_MS);
  }

  private publish(error: Error | null) {
    clearTimeout(this.timer);
    this.timer = undefined;
    // Not one by one: whatever was made of the events is made anew.
    if (this.output.length > this.keep * 1.1) {
      const kept = this.output.slice(-this.keep);
      this.place(kept, kept[0]!.id, this.part.until);
    }
    this.show({ events: this.all.slice(), loading: this.reading, error, retry: () => void this.load(), version: this.version, output: this.part });
  }
}
