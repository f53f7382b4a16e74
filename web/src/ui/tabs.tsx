import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { cx } from "./classes";
import { useChosenInSight } from "./insight";

export interface Tab {
  id: string;
  label: ReactNode;
  /** So many things are in it. */
  count?: number;
  content: ReactNode;
}

/** The chosen tab belongs to the URL, so it is given from outside. Only its content is mounted. */
export function Tabs({ tabs, value, onChange, label, fill }: {
  tabs: Tab[];
  value: string;
  onChange: (id: string) => void;
  label: string;
  /** The content takes the rest of the height. */
  fill?: boolean;
}) {
  const list = useChosenInSight<HTMLDivElement>(value);
  return (
    <Radix.Root
      value={value}
      onValueChange={onChange}
      className={cx(fill && "flex h-full min-h-0 flex-col")}
    >
      <Radix.List ref={list} aria-label={label} className="relative flex shrink-0 gap-1 overflow-x-auto border-b border-line px-1.5">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.id}
            value={tab.id}
            className={cx(
              "-mb-px shrink-0 border-b-2 border-transparent px-2.5 py-2 text-[13px] font-medium whitespace-nowrap text-muted hover:text-text",
              "data-[state=active]:border-accent data-[state=active]:text-text",
            )}
          >
            {tab.label}
            {tab.count !== undefined && <span className="ml-1 font-normal text-muted tabular-nums">{tab.count}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content
          key={tab.id}
          value={tab.id}
          className={cx("outline-none", fill && "min-h-0 flex-1 overflow-auto")}
        >
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
