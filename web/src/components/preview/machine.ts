// In which of its nine states the preview of a build is: what the server says of it, what asking the page
// itself found, and what an attempt to wake it came to.
import { ApiError, type Schemas } from "@/api/client";

export type PreviewState = Schemas["Build"]["preview_state"];

interface Known {
  server: PreviewState;
  check: { pending: boolean; state?: string; failed: boolean };
  resume: { pending: boolean; error: Error | null };
}

/** Whether the page itself can be asked: what the server knows of it may be from an earlier time. */
export const answers = (server: PreviewState) => server === "active" || server === "checking" || server === "blocked";

export function previewState({ server, check, resume }: Known): PreviewState {
  if (resume.pending) return "resuming";
  if (resume.error) return resumeFailure(resume.error);
  if (!answers(server)) return server;
  if (check.failed) return "error";
  if (check.pending) return "checking";
  return (check.state as PreviewState | undefined) ?? "active";
}

/** A sandbox that is gone cannot be woken by trying again. */
function resumeFailure(error: Error): PreviewState {
  return error instanceof ApiError && error.code === "sandbox_expired" ? "expired" : "resume_failed";
}

const REASONS: Record<string, string> = {
  x_frame_options: "its header X-Frame-Options forbids it",
  frame_ancestors: "the frame-ancestors of its header Content-Security-Policy forbid it",
};

export const blockedBy = (reason: string | null | undefined) => REASONS[reason ?? ""] ?? "the page forbids it";

/** A path of the page that is shown, whatever was typed: "/", "about", "http://…/about?x". */
export function pathOf(typed: string): string {
  const text = typed.trim().replace(/^https?:\/\/[^/]*/, "");
  return text.startsWith("/") ? text : `/${text}`;
}
