// What the user has to know wherever on the page he is: told by the server, not the result of an action.
import { useEvents } from "@/live/store";
import type { LiveEvent } from "@/live/stream";
import { dollars } from "@/ui/format";
import { duration } from "@/ui/time";
import { warned } from "@/ui/toast";

export interface Notice {
  title: string;
  text: string;
  /** Of several about the same thing only the newest is shown; the type of the event if nothing is said. */
  about?: string;
}

const ALERTS: Record<string, string> = {
  p95_ms: "The server answers slowly",
  error_pct: "Many requests fail",
  active_sandboxes: "Many sandboxes run",
  operations_per_minute: "Much is being changed",
};

/** `null` = nothing to be told of. */
export function noticeOf(event: LiveEvent): Notice | null {
  switch (event.type) {
    case "budget_warning": {
      const [spent, budget] = [Number(event.spent), Number(event.budget)];
      const title = spent >= budget ? "The budget of this month is used up" : "Most of this month's budget is used up";
      return { title, text: `${dollars(spent)} of ${dollars(budget)}` };
    }
    case "provider_key_refused":
      return {
        title: `The provider of sandboxes refuses the key ${String(event.key_id)}`,
        text: event.next_key_id ? `The key ${String(event.next_key_id)} is used instead.` : "There is no other key.",
      };
    case "github_budget_low":
      return { title: "GitHub will soon answer no more", text: `${String(event.remaining)} of ${String(event.limit)} requests are left.` };
    case "sandbox_expiring":
      return { title: "A preview will be put to sleep", text: `In ${duration(Number(event.seconds_left) * 1000)}. Its build can keep it awake.` };
    case "alert_raised":
    case "alert_ended": {
      const title = ALERTS[String(event.rule)] ?? String(event.rule);
      return { title: event.type === "alert_ended" ? `Over: ${title.charAt(0).toLowerCase()}${title.slice(1)}` : title, text: String(event.message), about: `alert ${String(event.rule)}` };
    }
    default:
      return null;
  }
}

export function useNotices() {
  useEvents((event) => {
    const notice = noticeOf(event);
    if (notice) warned(notice.about ?? event.type, notice.title, notice.text);
  });
}
