import { CircleAlert, CloudOff, Info, RotateCw } from "lucide-react";
import type { ReactNode } from "react";
import { reconnectNow, useConnection } from "@/live/store";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { useNow } from "@/ui/time";

const LOOKS = {
  bad: { classes: "bg-bad-soft text-bad", icon: CircleAlert },
  warn: { classes: "bg-warn-soft text-warn", icon: RotateCw },
  info: { classes: "bg-info-soft text-info", icon: Info },
  offline: { classes: "bg-warn-soft text-warn", icon: CloudOff },
};

/** Something that lasts and that the user should know, with what can be done. */
export function Banner({ look, children, actions }: { look: keyof typeof LOOKS; children: ReactNode; actions?: ReactNode }) {
  const { classes, icon: Icon } = LOOKS[look];
  return (
    <div role={look === "bad" ? "alert" : "status"} className={cx("flex shrink-0 flex-wrap items-start gap-x-3 gap-y-1.5 px-4 py-2", classes)}>
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-40 flex-1 break-words">{children}</div>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </div>
  );
}

/** The connection is lost: what is shown stays, and is brought up to date later. */
export function ConnectionBanner() {
  const connection = useConnection();
  const now = useNow();
  if (connection.state === "live" || connection.state === "connecting") return null;
  const seconds = connection.state === "waiting" ? Math.max(0, Math.ceil((connection.until - now) / 1000)) : 0;
  return (
    <Banner
      look="offline"
      actions={
        connection.state !== "refused" && (
          <Button small onClick={reconnectNow}>
            Try now
          </Button>
        )
      }
    >
      {connection.reason} What you see may be old.
      {connection.state === "waiting" && ` Connecting again in ${seconds} s.`}
      {connection.state === "polling" && " It is asked for every 5 s."}
    </Banner>
  );
}
