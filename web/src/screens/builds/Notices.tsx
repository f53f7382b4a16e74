// What lies between the head and the panels: mending, silence, failure, and the need of a confirmation.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Bell, CircleAlert, Clock, ShieldQuestion, Wrench } from "lucide-react";
import { type ReactNode, useState } from "react";
import { api, data } from "@/api/client";
import { keys } from "@/api/queries";
import { onLive } from "@/live/store";
import type { LiveEvent } from "@/live/stream";
import { Button } from "@/ui/button";
import { cx } from "@/ui/classes";
import { CopyButton } from "@/ui/copy";
import { duration, useNow } from "@/ui/time";
import { done, failed } from "@/ui/toast";
import { type Build, isOver } from "./queries";
import { autofixOf } from "./stages";

const SILENT_MS = 120_000;
const LONG_MS = 300_000;

const TONES = { warn: "bg-warn-soft text-warn", info: "bg-info-soft text-info", bad: "bg-bad-soft text-bad" };

function Notice({ tone, icon: Icon, children, action }: { tone: keyof typeof TONES; icon: typeof Bell; children: ReactNode; action?: ReactNode }) {
  return (
    <div className={cx("mx-4 mb-3 flex flex-wrap items-start gap-2 rounded-lg px-3 py-2", TONES[tone])}>
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-0 flex-1">{children}</div>
      {action}
    </div>
  );
}

export function Notices({ build, events }: { build: Build; events: LiveEvent[] }) {
  const autofix = autofixOf(build, events);
  return (
    <>
      {build.state === "failed" && <Failure build={build} />}
      {autofix && (
        <Notice tone="warn" icon={Wrench}>
          <span role="status">
            Auto-fixing (attempt {autofix.attempt} of {autofix.max})
          </span>
        </Notice>
      )}
      {!isOver(build) && build.started_at && <Patience build={build} events={events} />}
      {build.state === "ready" && build.usage?.iterations_remaining === 0 && <Confirmation build={build} />}
    </>
  );
}

function Failure({ build }: { build: Build }) {
  return (
    <section aria-label="Failure">
      <Notice
        tone="bad"
        icon={CircleAlert}
        action={
          build.debug_id && (
            <span className="inline-flex items-center gap-1 text-xs">
              <code>{build.debug_id}</code> <CopyButton text={build.debug_id} label="Copy the debug id" />
            </span>
          )
        }
      >
        <p className="font-semibold">{build.error_summary ?? "The build failed."}</p>
        {build.restored_version_of && <p className="text-[13px]">The version before was brought back.</p>}
        {build.error_message && (
          <details>
            <summary className="cursor-pointer py-0.5 text-[13px]">Technical details</summary>
            <pre tabIndex={0} className="max-h-56 overflow-auto font-mono text-xs whitespace-pre-wrap">
              {build.error_message}
            </pre>
          </details>
        )}
      </Notice>
    </section>
  );
}

/** After two minutes without news it says what goes on, after five it offers to call. */
function Patience({ build, events }: { build: Build; events: LiveEvent[] }) {
  const now = useNow(1000);
  const news = Math.max(Date.parse(build.started_at ?? ""), ...events.map((event) => Date.parse(event.timestamp)));
  const silent = now - news;
  const long = now - Date.parse(build.started_at ?? "") > LONG_MS;
  if (silent < SILENT_MS && !long) return null;
  return (
    <Notice tone="info" icon={Clock} action={long ? <NotifyButton build={build} /> : null}>
      {silent >= SILENT_MS ? `Still at it: ${build.stage_label}. Nothing new for ${duration(silent)}.` : `${build.stage_label}. This build takes long.`}
    </Notice>
  );
}

/** Waits beyond this screen: whoever asked to be called is elsewhere by then. */
function callWhenOver(build: Build) {
  const stop = onLive(
    (event) => {
      if (event.build_id !== build.id || (event.state !== "ready" && event.state !== "failed")) return;
      new Notification(event.state === "ready" ? `${build.project} is built` : `The build of ${build.project} failed`, { tag: build.id });
      stop();
    },
    () => undefined,
  );
}

function NotifyButton({ build }: { build: Build }) {
  const [wanted, setWanted] = useState(false);
  const ask = async () => {
    if ((await Notification.requestPermission()) !== "granted") return;
    setWanted(true);
    callWhenOver(build);
  };
  if (!("Notification" in window)) return null;
  return (
    <Button
      small
      disabled={wanted}
      icon={<Bell aria-hidden className="size-4" />}
      onClick={() => void ask()}
    >
      {wanted ? "You will be notified" : "Notify me"}
    </Button>
  );
}

function Confirmation({ build }: { build: Build }) {
  const queries = useQueryClient();
  const confirm = useMutation({
    mutationFn: () => data(api.POST("/api/v1/builds/{id}/confirm", { params: { path: { id: build.id } } })),
    onSuccess: () => {
      done(`${build.project} may be changed further`);
      void queries.invalidateQueries({ queryKey: keys.builds });
    },
    onError: (error) => failed("It was not confirmed", error),
  });
  return (
    <Notice
      tone="info"
      icon={ShieldQuestion}
      action={
        <Button small busy={confirm.isPending} onClick={() => confirm.mutate()}>
          Confirm {build.build_version}
        </Button>
      }
    >
      {build.usage?.iterations_used} changes were made without a confirmation. Look at the preview and confirm it to go on.
    </Notice>
  );
}
