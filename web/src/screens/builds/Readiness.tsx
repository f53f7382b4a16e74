import { useQuery } from "@tanstack/react-query";
import { CircleAlert, CircleCheck, CircleX } from "lucide-react";
import type { Schemas } from "@/api/client";
import { Badge } from "@/ui/badge";
import { CopyButton } from "@/ui/copy";
import { ErrorState, Skeleton } from "@/ui/states";
import { type Build, readinessQuery } from "./queries";

/** Whether the version can be put into service elsewhere, and how. */
export function Readiness({ build }: { build: Build }) {
  const readiness = useQuery(readinessQuery(build.id));
  if (readiness.isPending) return <Skeleton className="h-16" />;
  if (readiness.error) return <ErrorState error={readiness.error} onRetry={() => void readiness.refetch()} />;
  const { ready, blocking_issues: issues = [], warnings = [], recommended_path: path } = readiness.data;
  const commands = [...(path?.install ?? []), path?.build, path?.start].filter((command): command is string => Boolean(command));
  return (
    <div>
      {ready ? (
        <Badge tone="ok" icon={CircleCheck}>
          Can be deployed
        </Badge>
      ) : (
        <Badge tone="bad" icon={CircleX}>
          Not ready to deploy
        </Badge>
      )}
      <ul className="mt-2 flex flex-col gap-1.5 text-[13px]">
        {issues.map((issue) => (
          <Issue key={`${issue.code} ${issue.path} ${issue.line}`} issue={issue} />
        ))}
        {warnings.map((issue) => (
          <Issue key={issue.code} issue={issue} warning />
        ))}
      </ul>
      {path && (
        <div className="mt-1 text-[13px]">
          <p className="text-muted">
            As {path.target === "static" ? path.directory && path.directory !== "." ? `static files of ${path.directory}` : "static files" : `a ${path.target} server`}
          </p>
          {commands.length > 0 && (
            <div className="mt-1 flex items-start gap-1 rounded-md bg-sunken p-2">
              <pre className="min-w-0 flex-1 font-mono text-xs whitespace-pre-wrap">{commands.join("\n")}</pre>
              <CopyButton text={commands.join("\n")} label="Copy the commands" />
            </div>
          )}
        </div>
      )}
    </div>
  );
}

function Issue({ issue, warning }: { issue: Schemas["BuildIssue"]; warning?: boolean }) {
  return (
    <li className="flex gap-1.5">
      <CircleAlert aria-label={warning ? "Warning" : "Blocks"} className={`mt-0.5 size-4 shrink-0 ${warning ? "text-warn" : "text-bad"}`} />
      <span className="min-w-0">
        {issue.message}
        {issue.path && (
          <code className="block truncate text-xs text-muted">
            {issue.path}
            {issue.line ? `:${issue.line}` : ""}
          </code>
        )}
      </span>
    </li>
  );
}
