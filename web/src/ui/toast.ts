// Toasts tell the result of what the user did, and what the server warns of; lasting problems are shown in place.
import { toast } from "sonner";

export const done = (text: string, undo?: () => void) =>
  toast.success(text, undo ? { action: { label: "Undo", onClick: undo } } : undefined);

export const failed = (what: string, error: unknown, retry?: () => void) =>
  toast.error(what, {
    description: error instanceof Error ? error.message : String(error),
    duration: 8000,
    ...(retry && { action: { label: "Retry", onClick: retry } }),
  });

/** Of each kind only the newest is shown. */
export const warned = (kind: string, title: string, text: string) => toast.warning(title, { id: kind, description: text, duration: 15_000 });

/** Something came that can be looked at elsewhere. Without a link (its address may be none) only the text is shown. */
export const linked = (text: string, label: string, url: string | undefined) =>
  toast.success(text, {
    duration: 10_000,
    action: url ? { label, onClick: () => window.open(url, "_blank", "noreferrer") } : undefined,
  });
