import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { RebuildButton } from "@/components/preview/Rebuild";
import { cx } from "@/ui/classes";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { StatusBadge } from "@/ui/status";
import { Ago } from "@/ui/time";
import { type Build, buildsQuery } from "./queries";

/** All builds of the project, newest first; any older version can be brought back. */
export function Versions({ build }: { build: Build }) {
  const query = useQuery(buildsQuery({ project: build.project }));
  const builds = query.data?.builds;
  if (!builds) return query.isError ? <ErrorState error={query.error} onRetry={() => void query.refetch()} /> : <SkeletonRows rows={3} height="h-16" />;
  const newest = builds.find((each) => each.state === "ready");
  return (
    <ol aria-label={`Versions of ${build.project}`} className="py-1">
      {builds.map((each) => (
        <li key={each.id} className={cx("border-b border-line px-3 py-2 last:border-0", each.id === build.id && "bg-accent-soft")}>
          <Link
            to="/builds/$buildId"
            params={{ buildId: each.id }}
            aria-current={each.id === build.id ? "page" : undefined}
            className="flex items-center gap-2 py-0.5 font-medium hover:underline"
          >
            <span className="min-w-0 flex-1 truncate">{each.build_version ?? "No version"}</span>
            <StatusBadge kind="build" state={each.state} />
          </Link>
          {each.goal && <p className="truncate text-[13px] text-muted" title={each.goal}>{each.goal}</p>}
          <div className="flex min-h-7 items-center justify-between text-xs text-muted">
            <Ago time={each.enqueued_at} />
            {each.build_version && each.id !== newest?.id && <RebuildButton small label="Roll back" build={each} />}
          </div>
        </li>
      ))}
    </ol>
  );
}
