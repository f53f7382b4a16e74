import { SquareTerminal } from "lucide-react";
import type { ReactNode } from "react";
import { IconButton } from "@/ui/button";

/** The first lines of a task or session: its title and the terminal; its states and what can be done with it. */
export function HeadLine({ title, children, actions, onTerminal }: {
  title: ReactNode;
  /** Its states. */
  children: ReactNode;
  actions: ReactNode;
  onTerminal: () => void;
}) {
  return (
    <>
      <div className="flex items-start gap-2">
        <h1 className="line-clamp-2 min-w-0 flex-1 text-base leading-7 font-semibold">{title}</h1>
        <IconButton small label="Terminal (Ctrl+`)" onClick={onTerminal}>
          <SquareTerminal aria-hidden className="size-4" />
        </IconButton>
      </div>
      <div className="mt-0.5 flex min-h-7 flex-wrap items-center gap-x-3 gap-y-1.5">
        {children}
        <div className="ml-auto flex flex-wrap items-center gap-2">{actions}</div>
      </div>
    </>
  );
}
