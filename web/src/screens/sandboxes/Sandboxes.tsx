import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Box as BoxIcon, Pause, Play, Plus, SearchX, Trash2 } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { meQuery } from "@/api/queries";
import { usageQuery } from "@/shell/QuotaMeter";
import { useShortcuts } from "@/shell/shortcuts";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { dollars, plural } from "@/ui/format";
import { Page } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { type Box, filterOf, isFiltered, matching } from "./boxes";
import { CreateSandboxDialog } from "./CreateSandboxDialog";
import { Filters } from "./Filters";
import { type Action, ACTIONS, useAction, useBoxes } from "./queries";
import { SandboxPanel } from "./SandboxPanel";
import { SandboxTable } from "./SandboxTable";

/** "3 of 20 running · 1 paused · $0.12 today". */
function Numbers({ boxes }: { boxes: Box[] }) {
  const usage = useQuery({ ...usageQuery, retry: false }).data;
  const own = boxes.filter((box) => !box.user);
  const running = own.filter((box) => box.status === "running").length;
  const paused = own.filter((box) => box.status === "paused").length;
  return (
    <p className="text-muted tabular-nums" aria-live="polite">
      {running}
      {usage?.sandboxes.limit ? ` of ${usage.sandboxes.limit}` : ""} running · {paused} paused
      {usage ? ` · ${dollars(usage.cost_today_dollars)} today` : ""}
    </p>
  );
}

const BULK: { action: Action; label: string; icon: typeof Pause; from: string[] }[] = [
  { action: "pause", label: "Pause", icon: Pause, from: ["running"] },
  { action: "resume", label: "Resume", icon: Play, from: ["paused"] },
  { action: "kill", label: "Kill", icon: Trash2, from: ["running", "paused", "error", "creating"] },
];

function BulkBar({ boxes, onAct, onClear }: { boxes: Box[]; onAct: (action: Action, boxes: Box[]) => void; onClear: () => void }) {
  return (
    <div role="toolbar" aria-label="Selected sandboxes" className="sticky bottom-4 mx-auto mt-3 flex w-fit flex-wrap items-center gap-2 rounded-lg border border-line bg-panel px-3 py-2 shadow-float">
      <span className="font-medium">{boxes.length} selected</span>
      {BULK.map(({ action, label, icon: Icon, from }) => {
        const fit = boxes.filter((box) => from.includes(box.status));
        return (
          <Button
            key={action}
            small
            look={action === "kill" ? "danger" : "plain"}
            disabled={fit.length === 0}
            icon={<Icon aria-hidden className="size-4" />}
            onClick={() => onAct(action, fit)}
          >
            {label} {fit.length}
          </Button>
        );
      })}
      <Button small look="ghost" onClick={onClear}>
        Clear
      </Button>
    </div>
  );
}

export default function Sandboxes() {
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const navigate = useNavigate();
  const filter = filterOf(search);
  const admin = useQuery(meQuery).data?.role === "admin";
  const { boxes, error, refetch } = useBoxes(filter.everybody && admin);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [creating, setCreating] = useState(false);
  const [killing, setKilling] = useState<Box[]>([]);
  const [atWork, setAtWork] = useState<ReadonlyMap<string, string>>(new Map());
  const input = useRef<HTMLInputElement>(null);
  const action = useAction();
  const change = (next: Record<string, string | undefined>) =>
    void navigate({ to: ".", search: { ...search, ...next }, replace: true } as never);
  useShortcuts([
    { keys: "/", label: "Find a sandbox", scope: "Sandboxes", run: () => input.current?.focus() },
    { keys: "n", label: "New sandbox", scope: "Sandboxes", run: () => setCreating(true) },
  ]);

  // What was asked for is shown at once, until the server's own word is there.
  const known = useMemo(
    () => boxes?.map((box) => ({ ...box, status: atWork.get(box.id) ?? box.status })),
    [boxes, atWork],
  );
  const act = (what: Action, on: Box[]) => {
    setAtWork(new Map(on.map((box) => [box.id, ACTIONS[what].meanwhile])));
    setSelected(new Set());
    setKilling([]);
    action.mutate({ action: what, ids: on.map((box) => box.id) }, { onSettled: () => setAtWork(new Map()) });
  };
  const ask = (what: Action, on: Box[]) => (what === "kill" ? setKilling(on) : act(what, on));

  const shown = known && matching(known, filter);
  const chosen = shown?.filter((box) => selected.has(box.id)) ?? [];
  const templates = [...new Set(known?.map((box) => box.template).filter(Boolean))].sort();
  const newButton = (
    <Button look="primary" icon={<Plus aria-hidden className="size-4" />} onClick={() => setCreating(true)}>
      New sandbox
    </Button>
  );
  return (
    <Page
      title="Sandboxes"
      filters={known && <Numbers boxes={known} />}
      actions={newButton}
    >
      {error && !known ? (
        <ErrorState error={error} onRetry={refetch} title="The sandboxes could not be loaded" />
      ) : !known || !shown ? (
        <SkeletonRows height="h-11" />
      ) : known.length === 0 && !filter.everybody ? (
        <EmptyState icon={BoxIcon} title="No sandboxes yet" action={newButton}>
          A sandbox is a machine of its own for an agent or a program. Tasks, sessions and builds create theirs by themselves.
        </EmptyState>
      ) : (
        <>
          <Filters filter={filter} admin={admin} templates={templates} onChange={change} input={input} />
          {shown.length === 0 ? (
            <EmptyState icon={SearchX} title={isFiltered(filter) ? "No sandbox matches" : "No sandbox runs"} action={isFiltered(filter) ? undefined : newButton}>
              {isFiltered(filter) ? "Other filters show more." : "Those that have ended are under Ended."}
            </EmptyState>
          ) : (
            <SandboxTable boxes={shown} selected={selected} onSelect={setSelected} onAct={(what, box) => ask(what, [box])} onPeek={(box) => change({ peek: box.id })} />
          )}
          {chosen.length > 0 && <BulkBar boxes={chosen} onAct={ask} onClear={() => setSelected(new Set())} />}
        </>
      )}
      {search.peek && <SandboxPanel id={search.peek} onClose={() => change({ peek: undefined })} />}
      {creating && <CreateSandboxDialog onClose={() => setCreating(false)} />}
      {killing.length > 0 && (
        <ConfirmDialog
          open
          onClose={() => setKilling([])}
          onConfirm={() => act("kill", killing)}
          title={killing.length === 1 ? `Kill ${killing[0]!.id}?` : `Kill ${plural(killing.length, "sandbox", "sandboxes")}?`}
          lost={
            killing.length === 1
              ? "Its processes, memory and files are lost. What was pushed stays."
              : `The processes, memory and files of ${killing.map((box) => box.id).join(", ")} are lost.`
          }
          action="Kill"
          type={killing.length > 1 ? `kill ${killing.length}` : undefined}
        />
      )}
    </Page>
  );
}
