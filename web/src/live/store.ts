// The one stream of this page: who listens, and in what state it is.
import type { QueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { create } from "zustand";
import { noteConnection, noteEvent } from "@/api/notes";
import { staleKeys } from "./apply";
import { SharedStream } from "./shared";
import type { Connection, LiveEvent } from "./stream";

export const useConnection = create<Connection>(() => ({ state: "connecting" }));

type Listener = (event: LiveEvent) => void;
const listeners = new Set<Listener>();
const resets = new Set<() => void>();
let stream: SharedStream | null = null;
let polling: ReturnType<typeof setInterval> | undefined;

const BATCH_MS = 100;
const POLL_MS = 5000;

/** Opens the stream of the signed-in user; returns how to close it. */
export function startLive(queries: QueryClient): () => void {
  const pending = new Map<string, readonly unknown[]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    for (const queryKey of pending.values()) void queries.invalidateQueries({ queryKey });
    pending.clear();
  };
  stream = new SharedStream({
    onEvent: (event) => {
      noteEvent(event);
      for (const key of staleKeys(event)) pending.set(JSON.stringify(key), key);
      timer ??= setTimeout(flush, BATCH_MS);
      for (const listener of listeners) listener(event);
    },
    onReset: () => {
      void queries.invalidateQueries();
      for (const reset of resets) reset();
    },
    onConnection: (connection) => {
      if (connection.state === "live") noteConnection();
      useConnection.setState(connection, true);
      clearInterval(polling);
      if (connection.state === "polling") polling = setInterval(() => void queries.invalidateQueries(), POLL_MS);
    },
  });
  return () => {
    clearTimeout(timer);
    clearInterval(polling);
    stream?.close();
    stream = null;
  };
}

export const reconnectNow = () => stream?.hurry();

/** Calls `handler` with every event as it comes. */
export function useEvents(handler: Listener) {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    const listener: Listener = (event) => latest.current(event);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}

export function onLive(listener: Listener, reset: () => void): () => void {
  listeners.add(listener);
  resets.add(reset);
  return () => {
    listeners.delete(listener);
    resets.delete(reset);
  };
}
