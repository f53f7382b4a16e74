import { ChevronDown, Search } from "lucide-react";
import {
  type ComponentProps,
  cloneElement,
  isValidElement,
  type ReactElement,
  type ReactNode,
  useId,
} from "react";
import { cx } from "./classes";

const BOX =
  "w-full rounded-md border border-line-strong/60 bg-panel px-2.5 text-text disabled:opacity-60 aria-invalid:border-bad";

export function Input({ className, ...rest }: ComponentProps<"input">) {
  return <input {...rest} className={cx(BOX, "h-8", className)} />;
}

/** A text to look for. Escape leaves it, so that the keys of the list work again. */
export function SearchInput({ label, placeholder = "Search", className, ...rest }: ComponentProps<"input"> & { label: string }) {
  return (
    <span className={cx("relative inline-flex", className)}>
      <Search aria-hidden className="pointer-events-none absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-muted" />
      <Input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        {...rest}
        className="pl-8"
      />
    </span>
  );
}

export function Textarea({ className, ...rest }: ComponentProps<"textarea">) {
  return <textarea rows={4} {...rest} className={cx(BOX, "py-1.5", className)} />;
}

/** The browser's own list: right on phones, with a keyboard and with screen readers. */
export function Select({ className, children, ...rest }: ComponentProps<"select">) {
  return (
    <span className={cx("relative inline-flex", className)}>
      <select {...rest} className={cx(BOX, "h-8 appearance-none pr-8")}>
        {children}
      </select>
      <ChevronDown aria-hidden className="pointer-events-none absolute top-1/2 right-2 size-4 -translate-y-1/2 text-muted" />
    </span>
  );
}

/** A labelled input with its hint and its error. */
export function Field({ label, hint, error, children }: {
  label: ReactNode;
  hint?: ReactNode;
  error?: string;
  children: ReactElement<{ id?: string; "aria-describedby"?: string; "aria-invalid"?: boolean }>;
}) {
  const id = useId();
  const note = error ?? hint;
  const input = isValidElement(children)
    ? cloneElement(children, {
        id: children.props.id ?? id,
        "aria-describedby": note ? `${id}-note` : undefined,
        "aria-invalid": error ? true : undefined,
      })
    : children;
  return (
    <div className="mb-3">
      <label htmlFor={children.props.id ?? id} className="mb-1 block text-[13px] font-medium">
        {label}
      </label>
      {input}
      {note && (
        <p id={`${id}-note`} className={cx("mt-1 text-xs", error ? "text-bad" : "text-muted")}>
          {note}
        </p>
      )}
    </div>
  );
}

export function Checkbox({ label, className, ...rest }: ComponentProps<"input"> & { label: ReactNode }) {
  return (
    <label className={cx("inline-flex items-center gap-2", className)}>
      <input type="checkbox" {...rest} className="size-4 accent-(--accent)" />
      {label}
    </label>
  );
}

/** A checkbox in a row of a list; the row says what it is about, `label` says it to those who do not see it. */
export function Tick({ label, className, ...rest }: ComponentProps<"input"> & { label: string }) {
  return (
    <label className={cx("grid place-items-center", className)}>
      <input type="checkbox" aria-label={label} {...rest} className="size-4 accent-(--accent)" />
    </label>
  );
}

/** What was filled in, by name; what is empty is left out. */
export const filledIn = (fields: FormData): Record<string, string> =>
  Object.fromEntries([...fields].map(([name, value]) => [name, String(value).trim()]).filter(([, value]) => value));

/** Why what was sent was refused. */
export function FormError({ children }: { children: ReactNode }) {
  return (
    <p role="alert" className="mb-3 rounded-md bg-bad-soft px-3 py-2 text-bad">
      {children}
    </p>
  );
}
