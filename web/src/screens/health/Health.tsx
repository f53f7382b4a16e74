import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleX, TriangleAlert } from "lucide-react";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";
import { Badge, type Tone } from "@/ui/badge";
import { bytes, plural } from "@/ui/format";
import { Card, Page } from "@/ui/page";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { exact } from "@/ui/time";
import { healthQuery } from "./queries";
import { ThisPage } from "./ThisPage";

const TONES: Record<string, Tone> = { ok: "ok", degraded: "warn", down: "bad" };
const WORDS: Record<string, string> = { ok: "Everything works", degraded: "Something does not work", down: "Down" };
const TITLES: Record<string, string> = {
  database: "Database",
  engine: "Engine",
  provider: "Provider of sandboxes",
  github: "GitHub",
  runs: "Durable runs",
};

// The facts of a check whose names do not speak for themselves.
const FACTS: Record<string, (value: unknown) => string> = {
  configured: (value) => (value ? "a credential is set" : "no credential is set"),
  remaining: (value) => `${String(value)} calls left this hour`,
  finished_ms: (value) => `the last one took ${String(value)} ms`,
  users: (value) => plural(Number(value), "user"),
  snapshots: (value) => plural(Number(value), "snapshot"),
  repositories: (value) => plural(Number(value), "repository", "repositories"),
  name: String,
};

const factsOf = (facts: Record<string, unknown>) =>
  Object.entries(facts)
    .map(([name, value]) => FACTS[name]?.(value) ?? `${String(value)} ${name.replaceAll("_", " ")}`)
    .join(", ");

function Checks() {
  const health = useQuery(healthQuery);
  if (health.isPending) return <SkeletonRows rows={5} />;
  if (health.isError) return <ErrorState error={health.error} onRetry={() => void health.refetch()} />;
  const { status, version, time, checks, alerts } = health.data;
  return (
    <>
      <p className="flex flex-wrap items-center gap-2 px-4 py-3">
        <Badge tone={TONES[status] ?? "neutral"} icon={status === "ok" ? CircleCheck : CircleX}>
          {WORDS[status] ?? status}
        </Badge>
        <span className="text-muted">
          Caisson {version} · server time {exact(time)}
        </span>
      </p>
      <ul className="divide-y divide-line border-t border-line">
        {Object.entries(checks).map(([name, { status: state, ms, message, ...facts }]) => (
          <li key={name} className="flex flex-wrap items-center gap-x-3 gap-y-0.5 px-4 py-2.5">
            <span className="w-44 font-medium max-sm:w-auto max-sm:flex-1">{TITLES[name] ?? name}</span>
            <Badge tone={state === "ok" ? "ok" : "bad"} icon={state === "ok" ? CircleCheck : CircleX}>
              {state === "ok" ? "Works" : "Failed"}
            </Badge>
            <span className="w-14 text-right text-xs text-muted tabular-nums">{ms.toFixed(1)} ms</span>
            <span className="min-w-0 text-[13px] text-muted max-sm:basis-full sm:flex-1">{message || factsOf(facts)}</span>
          </li>
        ))}
        {alerts.map((alert) => (
          <li key={alert.rule} className="flex flex-wrap items-center gap-x-3 gap-y-0.5 px-4 py-2.5">
            <Badge tone="warn" icon={TriangleAlert}>
              Alert
            </Badge>
            <span className="min-w-0 flex-1 text-[13px] text-muted">
              {alert.message} Since {exact(alert.since)}.
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Storage() {
  const storage = useQuery({
    queryKey: [...keys.health, "storage"],
    queryFn: () => data(api.GET("/api/v1/storage")) as Promise<Record<string, { count: number; memoryBytes: number; diskBytes: number }>>,
  });
  if (storage.isPending) return <SkeletonRows rows={3} />;
  if (storage.isError) return <ErrorState error={storage.error} onRetry={() => void storage.refetch()} />;
  return (
    <ul className="divide-y divide-line">
      {Object.entries(storage.data).map(([kind, use]) => (
        <li key={kind} className="flex flex-wrap gap-x-3 px-4 py-2.5">
          <span className="w-44 font-medium capitalize max-sm:basis-full">{kind}</span>
          <span className="text-muted">
            {kind === "snapshots" ? plural(use.count, "snapshot") : plural(use.count, "sandbox", "sandboxes")}, {bytes(use.diskBytes)} of files, {bytes(use.memoryBytes)} of saved memory
          </span>
        </li>
      ))}
    </ul>
  );
}

export default function Health() {
  return (
    <Page title="Health">
      <div className="grid gap-4">
        <Card title="What the server needs">
          <Checks />
        </Card>
        <Card title="Disk">
          <Storage />
        </Card>
        <Card title="This page">
          <ThisPage />
        </Card>
      </div>
    </Page>
  );
}
