import { type ReactNode, useEffect } from "react";
import { cx } from "./classes";

/** The frame of a screen: its heading, its filters, its actions, its content. Sets the title of the browser's tab. */
export function Page({ title, filters, actions, children, fill }: {
  title: string;
  /** Beside the heading; on a narrow screen in a line of their own. */
  filters?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** The content takes exactly the rest of the window. */
  fill?: boolean;
}) {
  useTitle(title);
  return (
    <div className={fill ? "flex h-full min-h-0 flex-col" : "mx-auto flex w-full max-w-7xl flex-col"}>
      <header className="flex min-h-14 shrink-0 flex-wrap items-center gap-x-3 gap-y-2 px-4 py-3">
        <h1 className="text-lg font-semibold">{title}</h1>
        {filters && (
          <div className="flex flex-wrap items-center gap-x-3 gap-y-2 max-sm:order-last max-sm:w-full sm:ml-auto max-sm:[&>span]:flex-auto">{filters}</div>
        )}
        {actions && <div className={cx("flex flex-wrap items-center gap-2", filters ? "max-sm:ml-auto" : "ml-auto")}>{actions}</div>}
      </header>
      <div className={fill ? "min-h-0 flex-1" : "px-4 pb-8"}>{children}</div>
    </div>
  );
}

export function useTitle(title: string) {
  useEffect(() => {
    document.title = `${title} · Caisson`;
  }, [title]);
}

export function Card({ title, actions, children, className = "" }: {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  return (
    <section className={`min-w-0 rounded-lg border border-line bg-panel ${className}`}>
      {(title || actions) && (
        <header className="flex min-h-11 flex-wrap items-center gap-2 border-b border-line px-4 py-2">
          {title && <h2 className="font-semibold">{title}</h2>}
          {actions && <div className="ml-auto flex items-center gap-2">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}
