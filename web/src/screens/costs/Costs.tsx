import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { CircleDollarSign, Download } from "lucide-react";
import { Suspense, lazy } from "react";
import { type Schemas, api, data } from "@/api/client";
import { agentsQuery, keys } from "@/api/queries";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { saveFile } from "@/ui/download";
import { Select } from "@/ui/field";
import { dollars } from "@/ui/format";
import { Card, Page } from "@/ui/page";
import { EmptyState, ErrorState, Skeleton, SkeletonRows } from "@/ui/states";
import { duration } from "@/ui/time";

const Chart = lazy(() => import("@/components/Chart").then((module) => ({ default: module.Chart })));

type Sum = Schemas["CostSum"];
const PERIODS = { day: { count: 30, label: "30 days" }, week: { count: 26, label: "26 weeks" }, month: { count: 12, label: "12 months" } };
type Period = keyof typeof PERIODS;
const GROUPS = { agent: "Agent", task: "Task", squad: "Squad", kind: "Kind" };
type Group = keyof typeof GROUPS;

/** This month's spending, as far as it goes on like this until the month's end. */
export function forecast(spent: number, now: Date): number {
  const days = new Date(now.getFullYear(), now.getMonth() + 1, 0).getDate();
  const gone = now.getDate() - 1 + (now.getHours() * 60 + now.getMinutes()) / 1440;
  return gone > 0 ? (spent / gone) * days : spent;
}

function Budget() {
  const budget = useQuery({ queryKey: [...keys.costs, "budget"], queryFn: () => data(api.GET("/api/v1/costs/budget")) });
  if (budget.isPending) return <Skeleton className="m-4 h-16" />;
  if (budget.isError) return <ErrorState error={budget.error} onRetry={() => void budget.refetch()} />;
  const { limit, spent, alert_percent, action, used_up } = budget.data;
  const percent = limit > 0 ? Math.min(100, (spent / limit) * 100) : 0;
  return (
    <div className="p-4">
      <p className="flex flex-wrap items-baseline gap-x-2">
        <span className="text-2xl font-semibold tabular-nums">{dollars(spent)}</span>
        <span className="text-muted">
          this month{limit > 0 && ` of ${dollars(limit)}`} · {dollars(forecast(spent, new Date()))} by its end at this pace
        </span>
        {used_up && <Badge tone="bad">Used up</Badge>}
      </p>
      {limit > 0 ? (
        <div
          role="meter"
          aria-label="Budget of this month"
          aria-valuenow={Math.round(percent)}
          aria-valuemin={0}
          aria-valuemax={100}
          className="relative mt-3 h-2 rounded-full bg-sunken"
        >
          <div
            className={`h-full rounded-full ${percent >= alert_percent ? "bg-warn" : "bg-accent"}`}
            style={{ width: `${percent}%` }}
          />
          <span className="absolute top-[-3px] h-3.5 w-px bg-text" style={{ left: `${alert_percent}%` }} />
        </div>
      ) : null}
      <p className="mt-2 text-[13px] text-muted">
        {limit > 0
          ? `A warning comes at ${alert_percent} %. ${action === "stop" ? "At 100 % no task starts any more." : "Nothing is stopped."}`
          : (
              <>
                No budget is set. The settings <code>budget_month_dollars</code> and <code>budget_action</code> set one.
              </>
            )}
      </p>
    </div>
  );
}

function Plot({ period }: { period: Period }) {
  const sums = useQuery({
    queryKey: [...keys.costs, "summary", period],
    queryFn: async () =>
      (await data(api.GET("/api/v1/costs/summary", { params: { query: { period, count: PERIODS[period].count } } }))).sums,
  });
  if (sums.isPending) return <Skeleton className="m-4 h-52" />;
  if (sums.isError) return <ErrorState error={sums.error} onRetry={() => void sums.refetch()} />;
  return (
    <div className="p-4">
      <Suspense fallback={<Skeleton className="h-52" />}>
        <Chart
          label={`Dollars per ${period}`}
          kind="bars"
          height={208}
          x={sums.data.map((each) => Date.parse(each.key) / 1000)}
          series={[{ label: `per ${period}`, values: sums.data.map((each) => each.dollars), tone: "accent" }]}
          format={(amount) => (amount > 0 && amount < 0.01 ? `$${amount.toFixed(amount < 0.001 ? 6 : 4)}` : `$${amount.toFixed(2)}`)}
        />
      </Suspense>
    </div>
  );
}

function exportCsv(group: Group, sums: Sum[]) {
  const rows = sums.map((each) => [each.key, each.dollars, each.tokens_in, each.tokens_out, each.sandbox_ms, each.cpu_ms].join(","));
  const text = [`${group},dollars,tokens_in,tokens_out,sandbox_ms,cpu_ms`, ...rows, ""].join("\n");
  saveFile(`costs-by-${group}.csv`, text, "text/csv");
}

function Breakdown({ group, onGroup }: { group: Group; onGroup: (group: Group) => void }) {
  const sums = useQuery({
    queryKey: [...keys.costs, "stats", group],
    queryFn: async () => (await data(api.GET("/api/v1/costs/stats", { params: { query: { by: group } } }))).sums,
  });
  const agents = useQuery(agentsQuery).data;
  const name = (key: string) => (group === "agent" ? agents?.find((each) => each.id === key)?.name : undefined) ?? (key || "none");
  return (
    <Card
      title="Breakdown"
      actions={
        <>
          <Select aria-label="Group by" value={group} onChange={(event) => onGroup(event.target.value as Group)}>
            {Object.entries(GROUPS).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </Select>
          <Button
            small
            disabled={!sums.data?.length}
            icon={<Download aria-hidden className="size-4" />}
            onClick={() => sums.data && exportCsv(group, sums.data)}
          >
            CSV
          </Button>
        </>
      }
    >
      {sums.isPending ? (
        <SkeletonRows rows={4} />
      ) : sums.isError ? (
        <ErrorState error={sums.error} onRetry={() => void sums.refetch()} />
      ) : sums.data.length === 0 ? (
        <EmptyState icon={CircleDollarSign} title="Nothing was spent yet">
          Sandboxes are counted when they end, agents when they report their tokens.
        </EmptyState>
      ) : (
        <ul className="divide-y divide-line">
          {sums.data.map((each) => (
            <li key={each.key} className="flex flex-wrap items-baseline gap-x-4 px-4 py-2">
              <span className="min-w-0 flex-1 truncate">{name(each.key)}</span>
              <span className="text-[13px] text-muted tabular-nums max-sm:order-last max-sm:basis-full">
                {duration(each.sandbox_ms)} of sandbox time · {(each.tokens_in + each.tokens_out).toLocaleString()} tokens
              </span>
              <span className="w-20 text-right font-medium tabular-nums">{dollars(each.dollars)}</span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

export default function Costs() {
  const search = useSearch({ strict: false }) as { period?: Period; by?: Group };
  const navigate = useNavigate();
  const period = search.period && search.period in PERIODS ? search.period : "day";
  const group = search.by && search.by in GROUPS ? search.by : "agent";
  const set = (change: Partial<typeof search>) => void navigate({ to: "/costs", search: { ...search, ...change }, replace: true });
  return (
    <Page
      title="Costs"
      actions={
        <Select aria-label="Period" value={period} onChange={(event) => set({ period: event.target.value as Period })}>
          {Object.entries(PERIODS).map(([value, { label }]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </Select>
      }
    >
      <div className="grid gap-4">
        <Card title="Budget">
          <Budget />
        </Card>
        <Card title="Spending">
          <Plot period={period} />
        </Card>
        <Breakdown group={group} onGroup={(by) => set({ by })} />
      </div>
    </Page>
  );
}
