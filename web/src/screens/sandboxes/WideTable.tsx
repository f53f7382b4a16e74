import type { ReactNode } from "react";

/** A table that scrolls sideways on narrow screens; `children` are its rows. */
export function WideTable({ label, columns, children }: { label: string; columns: string[]; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <div className="overflow-x-auto p-4" tabIndex={0} role="region" aria-label={label}>
      <table className="w-full text-left">
        <thead className="text-xs text-muted">
          <tr>
            {columns.map((name) => (
              <th key={name} className="px-2 py-1.5 font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
