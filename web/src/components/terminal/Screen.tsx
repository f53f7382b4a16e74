// xterm in front of one shell.
import "./csp";
import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { type RefObject, useEffect, useRef } from "react";
import { useTheme } from "@/shell/theme";
import { copyText } from "@/ui/copy";
import { safeLink } from "@/ui/format";
import { ShellConnection, type ShellState } from "./connection";
import { terminalTheme, useTerminalSettings } from "./settings";

export interface ScreenHandle {
  find: (text: string, back?: boolean) => void;
  focus: () => void;
  retry: () => void;
}

interface Props {
  sandboxId: string;
  shellId: string;
  label: string;
  visible: boolean;
  readOnly: boolean;
  handle: RefObject<ScreenHandle | null>;
  onReady: (shellId: string) => void;
  onState: (state: ShellState) => void;
  /** Ctrl+Shift+F. */
  onSearch: () => void;
  /** Ctrl+. : the only key that leaves, as Tab belongs to the shell. */
  onLeave: () => void;
}

function openLink(event: MouseEvent, address: string) {
  event.preventDefault();
  const link = safeLink(address);
  if (link) window.open(link, "_blank", "noopener,noreferrer");
}

/** False for keys that are ours and not the shell's. */
function keysOf(terminal: Terminal, latest: RefObject<Props>) {
  return (event: KeyboardEvent): boolean => {
    if (event.type !== "keydown" || !(event.ctrlKey || event.metaKey)) return true;
    const ours: Record<string, () => void> = {
      ".": () => latest.current.onLeave(),
      ...(event.shiftKey && {
        F: () => latest.current.onSearch(),
        C: () => void copyText(terminal.getSelection()),
      }),
    };
    // The drawer's own key goes on to the page.
    if (event.key === "`") return false;
    const act = ours[event.key];
    if (!act) return true;
    event.preventDefault();
    act();
    return false;
  };
}

function makeTerminal(latest: RefObject<Props>) {
  const terminal = new Terminal({
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--font-mono") || "monospace",
    fontSize: 13,
    lineHeight: 1.2,
    scrollback: 5000,
    minimumContrastRatio: 4.5,
    theme: terminalTheme(),
    linkHandler: { activate: (event, address) => openLink(event, address) },
  });
  const fit = new FitAddon();
  const search = new SearchAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(search);
  terminal.loadAddon(new WebLinksAddon(openLink));
  terminal.attachCustomKeyEventHandler(keysOf(terminal, latest));
  return { terminal, fit, search };
}

const latin1 = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

/** Lives as long as the tab: a shell that is not looked at goes on. */
export function Screen(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const made = useRef<ReturnType<typeof makeTerminal> | null>(null);
  const dark = useTheme((state) => state.dark);
  const screenReader = useTerminalSettings((state) => state.screenReader);
  const { sandboxId, handle, visible, readOnly, label } = props;

  useEffect(() => {
    const parts = makeTerminal(latest);
    const { terminal, fit, search } = parts;
    made.current = parts;
    terminal.open(box.current!);
    if (box.current!.clientWidth > 0) fit.fit();
    const connection = new ShellConnection({
      sandboxId,
      shellId: latest.current.shellId,
      size: () => ({ cols: terminal.cols, rows: terminal.rows }),
      onReady: (id) => latest.current.onReady(id),
      onOutput: (bytes) => terminal.write(bytes),
      onState: (state) => latest.current.onState(state),
    });
    const typed = (bytes: Uint8Array<ArrayBuffer>) => !latest.current.readOnly && connection.send(bytes);
    terminal.onData((text) => typed(new TextEncoder().encode(text)));
    terminal.onBinary((text) => typed(latin1(text)));
    terminal.onResize(({ cols, rows }) => connection.resize(cols, rows));
    const watch = new ResizeObserver(() => box.current?.clientWidth && fit.fit());
    watch.observe(box.current!);
    handle.current = {
      find: (text, back) => (back ? search.findPrevious(text) : search.findNext(text)),
      focus: () => terminal.focus(),
      retry: connection.hurry,
    };
    return () => {
      watch.disconnect();
      connection.close();
      terminal.dispose();
      made.current = null;
    };
  }, [sandboxId, handle]);

  useEffect(() => {
    if (visible) made.current?.terminal.focus();
  }, [visible]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours are read from the page, which `dark` changes
  useEffect(() => {
    const options = made.current!.terminal.options;
    options.theme = terminalTheme();
    options.disableStdin = readOnly;
    options.screenReaderMode = screenReader;
    made.current!.terminal.textarea?.setAttribute("aria-label", `${label}. Control and full stop leave it.`);
  }, [dark, readOnly, screenReader, label]);

  return <div ref={box} className="absolute inset-0 bg-terminal pt-1 pl-2" hidden={!visible} data-shell={props.shellId} />;
}
