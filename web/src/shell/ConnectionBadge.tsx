import { CloudOff, LoaderCircle, Radio, RefreshCw, WifiOff } from "lucide-react";
import { reconnectNow, useConnection } from "@/live/store";
import { Badge } from "@/ui/badge";
import { useOnline } from "@/ui/media";
import { useNow } from "@/ui/time";

/** Whether what is shown is live. */
export function ConnectionBadge() {
  const connection = useConnection();
  const now = useNow();
  const online = useOnline();
  if (!online)
    return (
      <Badge tone="warn" icon={WifiOff}>
        No network
      </Badge>
    );
  switch (connection.state) {
    case "live":
      return (
        <Badge tone="ok" icon={Radio}>
          Live
        </Badge>
      );
    case "connecting":
      return (
        <Badge icon={LoaderCircle} spin>
          Connecting
        </Badge>
      );
    case "refused":
      return (
        <Badge tone="bad" icon={CloudOff}>
          Not connected
        </Badge>
      );
    default: {
      const seconds = connection.state === "waiting" ? Math.max(0, Math.ceil((connection.until - now) / 1000)) : 0;
      return (
        <button type="button" onClick={reconnectNow} title={`${connection.reason} Click to try now.`}>
          <Badge tone="warn" icon={connection.state === "polling" ? CloudOff : RefreshCw}>
            {connection.state === "polling" ? "Offline, polling" : `Reconnecting in ${seconds} s`}
          </Badge>
        </button>
      );
    }
  }
}
