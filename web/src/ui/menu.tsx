import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { cx } from "./classes";

export interface MenuItem {
  label: string;
  icon?: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
}

/** A menu under `trigger` (a button). `null` in `items` is a line. */
export function Menu({ trigger, items, label }: { trigger: ReactNode; items: (MenuItem | null)[]; label: string }) {
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          aria-label={label}
          align="end"
          sideOffset={4}
          className="z-50 min-w-44 rounded-lg border border-line bg-panel p-1 shadow-float"
        >
          {items.map((item, index) =>
            item === null ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no name
              <DropdownMenu.Separator key={index} className="my-1 h-px bg-line" />
            ) : (
              <DropdownMenu.Item
                key={item.label}
                disabled={item.disabled}
                onSelect={item.onSelect}
                className={cx(
                  "flex cursor-default items-center gap-2 rounded px-2 py-1.5 outline-none data-highlighted:bg-hover data-disabled:opacity-50",
                  item.danger && "text-bad",
                )}
              >
                {item.icon}
                {item.label}
              </DropdownMenu.Item>
            ),
          )}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
