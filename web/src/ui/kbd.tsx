export function Kbd({ keys }: { keys: string }) {
  return (
    <kbd className="rounded border border-line bg-sunken px-1.5 py-0.5 font-mono text-[11px] text-muted">{keys}</kbd>
  );
}

/** The key of a button. A phone has none. */
export function KeyHint({ keys }: { keys: string }) {
  return (
    <span className="max-sm:hidden">
      <Kbd keys={keys} />
    </span>
  );
}
