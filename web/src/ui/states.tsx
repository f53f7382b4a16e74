// What a list or a pane shows when there is nothing to show: four different things.
import { CircleAlert, type LucideIcon, RotateCw } from "lucide-react";
import type { ReactNode } from "react";
import { ApiError } from "@/api/client";
import { Button } from "./button";
import { cx } from "./classes";
import { CopyButton } from "./copy";

function Centered({ children, className }: { children: ReactNode; className?: string }) {
  return (
    <div className={cx("mx-auto flex max-w-md flex-col items-center gap-2 px-4 py-12 text-center", className)}>
      {children}
    </div>
  );
}

/** Nothing there yet, or nothing that matches: one sentence and one action. */
export function EmptyState({ icon: Icon, title, children, action }: {
  icon: LucideIcon;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <Centered>
      <span className="mb-1 rounded-full bg-sunken p-3 text-muted">
        <Icon aria-hidden className="size-6" />
      </span>
      <p className="font-semibold">{title}</p>
      {children && <div className="text-muted">{children}</div>}
      {action && <div className="mt-2 flex flex-wrap justify-center gap-2">{action}</div>}
    </Centered>
  );
}

/** Something could not be loaded: why, and again. `screen`: it stands in place of a whole screen. */
export function ErrorState({ error, onRetry, title = "This could not be loaded", screen }: {
  error: unknown;
  onRetry?: () => void;
  title?: string;
  screen?: boolean;
}) {
  const Title = screen ? "h1" : "p";
  const debugId = error instanceof ApiError ? error.debugId : "";
  return (
    <Centered>
      <span className="mb-1 rounded-full bg-bad-soft p-3 text-bad">
        <CircleAlert aria-hidden className="size-6" />
      </span>
      <Title className="font-semibold">{title}</Title>
      <p role="alert" className="text-muted">
        {error instanceof Error ? error.message : String(error)}
      </p>
      {debugId && (
        <p className="flex items-center gap-1 text-xs text-muted">
          <code>{debugId}</code> <CopyButton text={debugId} label="Copy the debug id" />
        </p>
      )}
      {onRetry && (
        <Button onClick={onRetry} icon={<RotateCw aria-hidden className="size-4" />} className="mt-2">
          Try again
        </Button>
      )}
    </Centered>
  );
}

/** The shape of what is being loaded. */
export function Skeleton({ className }: { className?: string }) {
  return <span aria-hidden className={cx("block animate-pulse rounded bg-hover", className)} />;
}

export function SkeletonRows({ rows = 6, height = "h-9" }: { rows?: number; height?: string }) {
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-2 p-4">
      {Array.from({ length: rows }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
        <Skeleton key={index} className={height} />
      ))}
    </div>
  );
}
