import { useQuery } from "@tanstack/react-query";
import { CircleAlert, CircleCheck, CircleDashed, Webhook } from "lucide-react";
import type { FormEvent } from "react";
import { api, data, json } from "@/api/client";
import { meQuery } from "@/api/queries";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { Field, Input } from "@/ui/field";
import { Card } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Ago } from "@/ui/time";
import { useParam } from "@/ui/url";
import { healthQuery } from "../health/queries";
import { GithubToken } from "./GithubToken";

interface Delivery {
  id: string;
  event: string;
  action: string;
  repo: string;
  received_at: string;
  outcome: "handled" | "ignored" | "refused" | "failed";
  detail: string;
}

const OUTCOMES = { handled: "ok", ignored: "neutral", refused: "warn", failed: "bad" } as const;

function Credential() {
  const health = useQuery(healthQuery);
  const github = health.data?.checks.github;
  if (health.isPending) return <SkeletonRows rows={1} />;
  if (health.isError && !health.data) return <ErrorState error={health.error} onRetry={() => void health.refetch()} />;
  return (
    <p className="flex flex-wrap items-center gap-2 p-4">
      {github?.status !== "ok" ? (
        <>
          <Badge tone="bad" icon={CircleAlert}>
            Does not work
          </Badge>
          {String(github?.message ?? "")}
        </>
      ) : github.configured ? (
        <>
          <Badge tone="ok" icon={CircleCheck}>
            Works
          </Badge>
          <span className="text-muted">{String(github.remaining ?? "")} calls left this hour. It never enters a sandbox.</span>
        </>
      ) : (
        <>
          <Badge tone="warn" icon={CircleDashed}>
            Not set
          </Badge>
          Start the server with GITHUB_TOKEN, or with the settings of a GitHub App. It is never shown and never enters a
          sandbox.
        </>
      )}
    </p>
  );
}

/** What the credential may do in one repository. */
function Rights() {
  const [repo = "", setRepo] = useParam("repo");
  const rights = useQuery({
    queryKey: ["github", "rights", repo],
    enabled: repo.includes("/"),
    retry: false,
    queryFn: () => {
      const [owner = "", name = ""] = repo.split("/");
      return data(api.GET("/api/v1/github/repos/{owner}/{name}/rights", { params: { path: { owner, name } } }));
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setRepo(String(new FormData(event.currentTarget).get("repo")).trim());
  };
  return (
    <div className="border-t border-line p-4">
      <form onSubmit={submit} className="flex items-end gap-2">
        <div className="w-72">
          <Field label="Check its rights in a repository" error={rights.error?.message}>
            <Input name="repo" defaultValue={repo} placeholder="owner/name" pattern="[^\/\s]+\/[^\/\s]+" required />
          </Field>
        </div>
        <Button type="submit" busy={rights.isFetching} className="mb-3">
          Check
        </Button>
      </form>
      {rights.data && (
        <ul className="flex flex-wrap gap-2">
          {Object.entries(rights.data).map(([right, value]) => (
            <li key={right}>
              <Badge tone={value === true ? "ok" : value === false ? "bad" : "neutral"} icon={value === false ? CircleAlert : CircleCheck}>
                {right.replaceAll("_", " ")}: {String(value)}
              </Badge>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Deliveries() {
  const deliveries = useQuery({
    queryKey: ["webhooks", "deliveries"],
    refetchInterval: 15_000,
    queryFn: async () => (await json<{ deliveries: Delivery[] }>("/api/v1/webhooks/github/deliveries?limit=50")).deliveries,
  });
  if (deliveries.isPending) return <SkeletonRows rows={3} />;
  if (deliveries.isError) return <ErrorState error={deliveries.error} onRetry={() => void deliveries.refetch()} />;
  if (deliveries.data.length === 0)
    return (
      <EmptyState icon={Webhook} title="No deliveries yet">
        GitHub has not called this server yet. Add the payload URL above to a repository or an organization.
      </EmptyState>
    );
  return (
    <ul className="divide-y divide-line">
      {deliveries.data.map((each) => (
        <li key={each.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 text-[13px]">
          <Badge tone={OUTCOMES[each.outcome] ?? "neutral"}>{each.outcome}</Badge>
          <span className="font-medium">
            {each.event} {each.action}
          </span>
          <span className="text-muted">{each.repo}</span>
          <span className="min-w-0 flex-1 truncate text-muted">{each.detail}</span>
          <Ago time={each.received_at} />
        </li>
      ))}
    </ul>
  );
}

function Hook() {
  const hook = useQuery({ queryKey: ["webhooks", "test"], queryFn: () => data(api.GET("/api/v1/webhooks/github/test")) });
  if (!hook.data) return hook.isError ? <ErrorState error={hook.error} onRetry={() => void hook.refetch()} /> : <SkeletonRows rows={1} />;
  const url = location.origin + hook.data.endpoint;
  return (
    <div className="grid gap-1 p-4 text-[13px]">
      <p className="flex items-center gap-2">
        <span className="min-w-0">
          Payload URL <code className="font-mono break-all">{url}</code>
        </span>
        <CopyButton text={url} label="Copy the payload URL" />
      </p>
      <p className="text-muted">Events: {hook.data.supported_events.join(", ")}. Content type application/json.</p>
      <p>
        {hook.data.secret_configured ? (
          <Badge tone="ok" icon={CircleCheck}>
            The secret is set
          </Badge>
        ) : (
          <Badge tone="warn" icon={CircleDashed} className="!whitespace-normal">
            No secret: deliveries are refused until github_webhook_secret is set
          </Badge>
        )}
      </p>
    </div>
  );
}

export function Github() {
  const admin = useQuery(meQuery).data?.role === "admin";
  return (
    <div className="grid gap-4">
      <Card title="Credential">
        <Credential />
        <Rights />
      </Card>
      <Card title="In your name">
        <GithubToken />
      </Card>
      <Card title="Webhook">
        <Hook />
      </Card>
      {admin && (
        <Card title="Last deliveries">
          <Deliveries />
        </Card>
      )}
    </div>
  );
}
