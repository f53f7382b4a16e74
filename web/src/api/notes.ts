// What this page has asked and been told lately: for finding out why it is slow or old.
import { create } from "zustand";

export interface Call {
  id: number;
  method: string;
  /** Without what was asked for: only where. */
  path: string;
  /** 0 = there was no answer. */
  status: number;
  ms: number;
}

export interface Told {
  id: number;
  type: string;
  timestamp: string;
}

const KEPT = 50;

interface Notes {
  calls: Call[];
  events: Told[];
  /** Of this stream, since the page was opened. */
  eventCount: number;
  connections: number;
}

export const useNotes = create<Notes>(() => ({ calls: [], events: [], eventCount: 0, connections: 0 }));

let lastCall = 0;

export function noteCall(call: Omit<Call, "id">) {
  lastCall += 1;
  const noted = { ...call, id: lastCall };
  useNotes.setState(({ calls }) => ({ calls: [noted, ...calls.slice(0, KEPT - 1)] }));
}

export const noteEvent = ({ id, type, timestamp }: Told) =>
  useNotes.setState(({ events, eventCount }) => ({ events: [{ id, type, timestamp }, ...events.slice(0, KEPT - 1)], eventCount: eventCount + 1 }));

export const noteConnection = () => useNotes.setState(({ connections }) => ({ connections: connections + 1 }));

/** The time that so many of a hundred calls do not need. */
export function percentile(calls: Call[], percent: number): number {
  const sorted = calls.map((call) => call.ms).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0;
}
