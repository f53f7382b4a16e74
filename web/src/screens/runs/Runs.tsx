import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { FilterX, Workflow } from "lucide-react";
import { meQuery } from "@/api/queries";
import { stepLabel } from "@/components/Stepper";
import { useRows } from "@/shell/rows";
import { Button } from "@/ui/button";
import { Checkbox, Select } from "@/ui/field";
import { capitalized, plural } from "@/ui/format";
import { Page } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { lookOf, StatusBadge } from "@/ui/status";
import { Ago, duration, Elapsed } from "@/ui/time";
import { PAGE, type RunFilter, runsQuery, useSubjects } from "./queries";
import { isOver, type Run } from "./timeline";

const STATES = ["queued", "running", "waiting", "succeeded", "failed", "dead", "canceled"];
const WORKFLOWS = ["task", "build", "session", "message"];

export default function Runs() {
  const filter = useSearch({ strict: false }) as RunFilter;
  const navigate = useNavigate();
  const admin = useQuery(meQuery).data?.role === "admin";
  const runs = useQuery({ ...runsQuery(filter), placeholderData: (before) => before });
  const change = (next: RunFilter) =>
    void navigate({ to: "/runs", search: { ...filter, page: undefined, ...next } as Record<string, string | undefined>, replace: true });
  const filtered = Boolean(filter.state || filter.definition || filter.task || filter.all);
  const page = Number(filter.page ?? 1);
  return (
    <Page
      title="Runs"
      filters={
        <>
          <Select aria-label="State" value={filter.state ?? ""} onChange={(event) => change({ state: event.target.value || undefined })}>
            <option value="">Any state</option>
            <option value="failed,dead">Failed or given up</option>
            {STATES.map((state) => (
              <option key={state} value={state}>
                {lookOf("run", state).label}
              </option>
            ))}
          </Select>
          <Select aria-label="Workflow" value={filter.definition ?? ""} onChange={(event) => change({ definition: event.target.value || undefined })}>
            <option value="">Any workflow</option>
            {WORKFLOWS.map((name) => (
              <option key={name} value={name}>
                {capitalized(name)}
              </option>
            ))}
          </Select>
          {admin && (
            <Checkbox label="All users" checked={Boolean(filter.all)} onChange={(event) => change({ all: event.target.checked ? "1" : undefined })} />
          )}
          {filter.task && (
            <Button small onClick={() => change({ task: undefined })} icon={<FilterX aria-hidden className="size-4" />}>
              Of one task
            </Button>
          )}
        </>
      }
    >
      {runs.isPending ? (
        <SkeletonRows />
      ) : runs.error ? (
        <ErrorState error={runs.error} onRetry={() => void runs.refetch()} />
      ) : runs.data.runs.length === 0 ? (
        <Nothing filtered={filtered} onClear={() => void navigate({ to: "/runs", search: {} })} />
      ) : (
        <>
          <RunTable runs={runs.data.runs} />
          <footer className="flex items-center gap-3 pt-3 text-muted">
            <span>{plural(runs.data.total, "run")}</span>
            {runs.data.total > PAGE && (
              <span className="ml-auto flex items-center gap-2">
                <Button small disabled={page <= 1} onClick={() => change({ page: page > 2 ? String(page - 1) : undefined })}>
                  Newer
                </Button>
                Page {page} of {Math.ceil(runs.data.total / PAGE)}
                <Button small disabled={page * PAGE >= runs.data.total} onClick={() => change({ page: String(page + 1) })}>
                  Older
                </Button>
              </span>
            )}
          </footer>
        </>
      )}
    </Page>
  );
}

function Nothing({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  return filtered ? (
    <EmptyState icon={FilterX} title="No run matches" action={<Button onClick={onClear}>Clear the filters</Button>} />
  ) : (
    <EmptyState icon={Workflow} title="Nothing has run yet">
      Every task, build and message is worked on in steps. They show up here, with their retries and failures.
    </EmptyState>
  );
}

const CELL = "px-3 py-2 align-middle";

function RunTable({ runs }: { runs: Run[] }) {
  const subject = useSubjects();
  useRows("Runs", "run");
  return (
    <div className="overflow-x-auto rounded-lg border border-line bg-panel" tabIndex={0} role="group" aria-label="Runs">
      <table className="w-full text-left">
        <thead className="border-b border-line text-xs text-muted [&_th]:font-medium">
          <tr>
            <th className={CELL}>State</th>
            <th className={CELL}>About</th>
            <th className={`${CELL} hidden md:table-cell`}>Workflow</th>
            <th className={`${CELL} hidden md:table-cell`}>Step</th>
            <th className={`${CELL} hidden lg:table-cell`}>Queued</th>
            <th className={`${CELL} hidden sm:table-cell`}>Duration</th>
            <th className={`${CELL} hidden sm:table-cell`}>Created</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.id} className="relative border-b border-line last:border-0 focus-within:bg-hover hover:bg-hover">
              <td className={`${CELL} w-px whitespace-nowrap`}>
                <StatusBadge kind="run" state={run.state} />
              </td>
              <td className={`${CELL} w-1/2 max-w-0 max-sm:w-full`}>
                {/* The link covers its row. */}
                <Link data-row={run.id} to="/runs/$runId" params={{ runId: run.id }} className="block truncate font-medium after:absolute after:inset-0">
                  {subject(run).title}
                </Link>
                {run.error && <p className="truncate text-[13px] text-bad first-letter:uppercase">{run.error}</p>}
              </td>
              <td className={`${CELL} hidden text-muted md:table-cell`}>{capitalized(run.definition)}</td>
              <td className={`${CELL} hidden text-muted md:table-cell`}>{isOver(run) ? "" : stepLabel(run.step)}</td>
              <td className={`${CELL} hidden text-muted tabular-nums lg:table-cell`}>{run.queued_ms === null ? "" : duration(run.queued_ms)}</td>
              <td className={`${CELL} hidden text-muted sm:table-cell`}>{run.started_at && <Elapsed from={run.started_at} until={run.finished_at} />}</td>
              <td className={`${CELL} hidden text-muted sm:table-cell`}>
                <Ago time={run.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
