import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Archive, Box as BoxIcon, ChevronRight, Pause } from "lucide-react";
import { type ReactNode, Suspense } from "react";
import { meQuery } from "@/api/queries";
import { Terminal } from "@/components/TerminalDrawer";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { lazily } from "@/ui/lazily";
import { useTitle } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { type Tab, Tabs } from "@/ui/tabs";
import { exact } from "@/ui/time";
import { Actions } from "./Actions";
import { AuditTab } from "./AuditTab";
import { hasEnded, ownMetadata, reasonText } from "./boxes";
import { Metrics, type Range } from "./Metrics";
import { OperationsTab } from "./OperationsTab";
import { Overview } from "./Overview";
import { type Detail, detailQuery, isGone, useAction } from "./queries";
import { TimeLeft } from "./TimeLeft";

const Logs = lazily(() => import("./Logs"));
const Preview = lazily(() => import("@/components/Preview").then((module) => ({ default: module.Preview })));
const Files = lazily(() => import("@/components/Files").then((module) => ({ default: module.Files })));

/** What needs a running sandbox, and what to say while it is none. */
function Awake({ box, children }: { box: Detail; children: ReactNode }) {
  const action = useAction();
  if (box.status === "running") return children;
  if (box.status === "paused")
    return (
      <EmptyState
        icon={Pause}
        title="The sandbox is paused"
        action={
          <Button look="primary" busy={action.isPending} onClick={() => action.mutate({ action: "resume", ids: [box.id] })}>
            Resume
          </Button>
        }
      >
        Its files and processes are where they were as soon as it runs again.
      </EmptyState>
    );
  if (hasEnded(box.status)) return <EmptyState icon={Archive} title="The sandbox has ended">Its files are gone with it.</EmptyState>;
  return <SkeletonRows />;
}

function Header({ box }: { box: Detail }) {
  const purpose = ownMetadata(box.metadata).purpose;
  const ended = hasEnded(box.status);
  const reason = reasonText(box.reason ?? box.last_error);
  return (
    <header className="shrink-0 px-4 pt-3 pb-2">
      <nav aria-label="Breadcrumb" className="flex items-center gap-1 text-[13px] text-muted">
        <Link to="/sandboxes" className="hover:underline">
          Sandboxes
        </Link>
        <ChevronRight aria-hidden className="size-3.5" />
        <span className="truncate">{purpose ?? "Sandbox"}</span>
      </nav>
      <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-2">
        <span className="flex min-w-0 items-center">
          <h1 className="truncate font-mono text-lg font-semibold">{box.id}</h1>
          <CopyButton text={box.sandboxID ?? box.id} label="Copy the id" />
        </span>
        <StatusBadge kind="sandbox" state={box.status} />
        {box.status === "running" && box.endAt && (
          <span className="text-muted">
            <TimeLeft endAt={box.endAt} /> left
          </span>
        )}
        {ended && (
          <span className="text-muted">
            {box.endedAt && `${exact(box.endedAt)}: `}
            {reason || "ended"}
          </span>
        )}
        {box.status === "error" && <span className="text-bad">{reason}</span>}
        <div className="ml-auto flex flex-wrap items-center gap-2">
          <Actions box={box} />
        </div>
      </div>
    </header>
  );
}

function Content({ box }: { box: Detail }) {
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const navigate = useNavigate();
  const admin = useQuery(meQuery).data?.role === "admin";
  const change = (next: Record<string, string | undefined>) => void navigate({ to: ".", search: { ...search, ...next }, replace: true } as never);
  const tabs: Tab[] = [
    { id: "overview", label: "Overview", content: <Overview box={box} /> },
    {
      id: "metrics",
      label: "Metrics",
      content: <Metrics id={box.id} backendId={box.sandboxID ?? box.id} range={(search.range as Range) ?? "5m"} onRange={(range) => change({ range })} />,
    },
    { id: "logs", label: "Logs", content: <Suspense fallback={<SkeletonRows />}><Logs id={box.id} /></Suspense> },
    {
      id: "terminal",
      label: "Terminal",
      content: (
        <Awake box={box}>
          <Terminal sandboxId={box.id} />
        </Awake>
      ),
    },
    {
      id: "files",
      label: "Files",
      content: (
        <Awake box={box}>
          <Suspense fallback={<SkeletonRows />}>
            <Files sandboxId={box.id} />
          </Suspense>
        </Awake>
      ),
    },
    {
      id: "preview",
      label: "Preview",
      content: (
        <Awake box={box}>
          <Suspense fallback={<SkeletonRows />}>
            <Preview source={{ kind: "sandbox", id: box.id }} />
          </Suspense>
        </Awake>
      ),
    },
    { id: "operations", label: "Operations", content: <OperationsTab box={box} /> },
    ...(admin ? [{ id: "audit", label: "Audit", content: <AuditTab id={box.id} /> }] : []),
  ];
  const tab = tabs.some((each) => each.id === search.tab) ? search.tab! : "overview";
  return <Tabs label="Sandbox" tabs={tabs} value={tab} onChange={(id) => change({ tab: id === "overview" ? undefined : id })} fill />;
}

export default function Sandbox() {
  const { sandboxId } = useParams({ strict: false }) as { sandboxId: string };
  const box = useQuery(detailQuery(sandboxId));
  useTitle(`Sandbox ${sandboxId}`);
  if (!box.data) {
    const title = isGone(box.error) ? "There is no such sandbox" : "The sandbox could not be loaded";
    return (
      <>
        <h1 className="sr-only">Sandbox</h1>
        {isGone(box.error) ? (
          <EmptyState icon={BoxIcon} title={title} action={<Link to="/sandboxes" className="text-accent hover:underline">All sandboxes</Link>}>
            It is another user's, or was forgotten.
          </EmptyState>
        ) : box.error ? (
          <ErrorState error={box.error} onRetry={() => void box.refetch()} title={title} />
        ) : (
          <SkeletonRows />
        )}
      </>
    );
  }
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Header box={box.data} />
      <div className="min-h-0 flex-1">
        <Content box={box.data} />
      </div>
    </div>
  );
}
