import { Accessibility, Lock, LockOpen, Plus, Search, SquareTerminal, Trash2 } from "lucide-react";
import { type ReactNode, type RefObject, useRef, useState } from "react";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/classes";
import { ConfirmDialog } from "@/ui/dialog";
import { EmptyState, SkeletonRows } from "@/ui/states";
import { failed } from "@/ui/toast";
import { endShell, type ShellState } from "./connection";
import { FindBar } from "./FindBar";
import { Screen, type ScreenHandle } from "./Screen";
import { setScreenReader, useTerminalSettings } from "./settings";
import { type Shell, useShells } from "./shells";
import { ShellNotice } from "./ShellNotice";

const NARROW = "(max-width: 640px)";

/** One shell with what lies over it: the search and what is wrong. */
function Pane({ sandboxId, shell, label, visible, readOnly, searching, onSearch, onLeave, onTold, onNew, onRemove }: {
  sandboxId: string;
  shell: Shell;
  label: string;
  visible: boolean;
  readOnly: boolean;
  searching: boolean;
  onSearch: (on: boolean) => void;
  onLeave: () => void;
  onTold: (id: string) => void;
  onNew: () => void;
  onRemove: () => void;
}) {
  const screen = useRef<ScreenHandle | null>(null);
  const [state, setState] = useState<ShellState>({ state: "connecting" });
  return (
    <div role="tabpanel" aria-label={label} hidden={!visible} className="flex h-full flex-col" data-state={state.state}>
      {searching && visible && (
        <FindBar
          onFind={(text, back) => screen.current?.find(text, back)}
          onClose={() => {
            onSearch(false);
            screen.current?.focus();
          }}
        />
      )}
      <div className="relative min-h-0 flex-1">
        <Screen
          sandboxId={sandboxId}
          shellId={shell.id}
          label={label}
          visible={visible}
          readOnly={readOnly}
          handle={screen}
          onReady={onTold}
          onState={setState}
          onSearch={() => onSearch(true)}
          onLeave={onLeave}
        />
      </div>
      <ShellNotice state={state} onRetry={() => screen.current?.retry()} onNew={onNew} onRemove={onRemove} />
    </div>
  );
}

function TabStrip({ shells, active, onChange, first }: {
  shells: Shell[];
  active: number;
  onChange: (key: number) => void;
  first: RefObject<HTMLButtonElement | null>;
}) {
  const step = (by: number) => {
    const index = shells.findIndex((each) => each.key === active);
    const next = shells[(index + by + shells.length) % shells.length];
    if (next) onChange(next.key);
  };
  return (
    <div role="tablist" aria-label="Shells" className="flex min-w-0 gap-1 overflow-x-auto">
      {shells.map((shell, index) => (
        <button
          key={shell.key}
          ref={shell.key === active ? first : undefined}
          type="button"
          role="tab"
          aria-selected={shell.key === active}
          tabIndex={shell.key === active ? 0 : -1}
          onClick={() => onChange(shell.key)}
          onKeyDown={(event) => {
            if (event.key === "ArrowRight") step(1);
            if (event.key === "ArrowLeft") step(-1);
          }}
          className={cx(
            "inline-flex h-7 items-center gap-1.5 rounded-md px-2 text-[13px] font-medium whitespace-nowrap",
            shell.key === active ? "bg-accent-soft text-accent" : "text-muted hover:bg-hover hover:text-text",
          )}
        >
          <SquareTerminal aria-hidden className="size-4" /> Shell {index + 1}
        </button>
      ))}
    </div>
  );
}

/** Shells of a sandbox, one tab each, filling its parent. */
export default function ShellTabs({ sandboxId, actions }: { sandboxId: string; actions?: ReactNode }) {
  const { shells, loading, active, setActive, add, told, remove } = useShells(sandboxId);
  const [readOnly, setReadOnly] = useState(() => matchMedia(NARROW).matches);
  const [searching, setSearching] = useState(false);
  const [ending, setEnding] = useState(false);
  const screenReader = useTerminalSettings((state) => state.screenReader);
  const tab = useRef<HTMLButtonElement>(null);
  const index = shells.findIndex((each) => each.key === active);

  const end = async () => {
    const shell = shells[index]!;
    setEnding(false);
    try {
      if (shell.id) await endShell(sandboxId, shell.id);
      remove(shell.key);
    } catch (error) {
      failed("The shell could not be ended", error);
    }
  };

  return (
    <section aria-label="Terminal" className="flex h-full min-h-0 flex-col">
      <div className="flex shrink-0 items-center gap-1 border-b border-line bg-panel px-2 py-1">
        <TabStrip shells={shells} active={active} onChange={setActive} first={tab} />
        <IconButton label="New shell" small onClick={add}>
          <Plus aria-hidden className="size-4" />
        </IconButton>
        <div className="ml-auto flex items-center gap-0.5">
          <IconButton label="Find" small aria-pressed={searching} onClick={() => setSearching(!searching)}>
            <Search aria-hidden className="size-4" />
          </IconButton>
          <IconButton
            label="Read only"
            small
            aria-pressed={readOnly}
            className={cx(readOnly && "!bg-warn-soft !text-warn")}
            onClick={() => setReadOnly(!readOnly)}
          >
            {readOnly ? <Lock aria-hidden className="size-4" /> : <LockOpen aria-hidden className="size-4" />}
          </IconButton>
          <IconButton
            label="Screen reader mode"
            small
            aria-pressed={screenReader}
            className={cx(screenReader && "!bg-accent-soft !text-accent")}
            onClick={() => setScreenReader(!screenReader)}
          >
            <Accessibility aria-hidden className="size-4" />
          </IconButton>
          <IconButton label="End this shell" small disabled={index < 0} onClick={() => setEnding(true)}>
            <Trash2 aria-hidden className="size-4" />
          </IconButton>
          {actions}
        </div>
      </div>
      <div className="min-h-0 flex-1 bg-terminal">
        {loading && <SkeletonRows rows={3} />}
        {shells.map((shell, position) => (
          <Pane
            key={shell.key}
            sandboxId={sandboxId}
            shell={shell}
            label={`Shell ${position + 1}`}
            visible={shell.key === active}
            readOnly={readOnly}
            searching={searching}
            onSearch={setSearching}
            onLeave={() => tab.current?.focus()}
            onTold={(id) => told(shell.key, id)}
            onNew={() => {
              remove(shell.key);
              add();
            }}
            onRemove={() => remove(shell.key)}
          />
        ))}
        {!loading && shells.length === 0 && (
          <div className="h-full bg-panel">
            <EmptyState icon={SquareTerminal} title="No shell is open" action={<Button onClick={add}>New shell</Button>} />
          </div>
        )}
      </div>
      <ConfirmDialog
        open={ending}
        onClose={() => setEnding(false)}
        onConfirm={() => void end()}
        title={`End shell ${index + 1}?`}
        lost="Whatever runs in it ends, too."
        action="End the shell"
      />
    </section>
  );
}
