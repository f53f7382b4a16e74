import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useBlocker } from "@tanstack/react-router";
import { ArrowLeft, Download, FileQuestion, Save } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { bytes } from "@/ui/format";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { done, failed } from "@/ui/toast";
import { downloadFile, type Entry, filesQuery, readFile, writeFile } from "./calls";
import { asText } from "./paths";

/** Bigger files are to be downloaded. */
const MAX_BYTES = 512_000;

/** Names in the address that say which file is shown. */
const PLACE = ["tab", "path", "file"];
const textAt = (search: object, name: string) => (search as Record<string, string | undefined>)[name];

/** Shows a small text and lets it be changed. Ctrl+S saves. */
export function Editor({ sandboxId, folder, entry, onClose }: {
  sandboxId: string;
  folder: string;
  entry: Entry;
  onClose: () => void;
}) {
  const queries = useQueryClient();
  const small = entry.size <= MAX_BYTES;
  const content = useQuery({
    queryKey: ["file", sandboxId, entry.path],
    queryFn: async () => ({ text: asText(await readFile(sandboxId, entry.path)) }),
    enabled: small,
    // What is being edited is not replaced under the hand.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const loaded = content.data?.text;
  const [text, setText] = useState<string | null>(null);
  const [saved, setSaved] = useState<string | null>(null);
  const [saving, setSaving] = useState(false);
  const [newer, setNewer] = useState(false);
  const [knownTime, setKnownTime] = useState(entry.modified_at);
  useEffect(() => {
    if (typeof loaded !== "string") return;
    setText((old) => old ?? loaded);
    setSaved((old) => old ?? loaded);
  }, [loaded]);
  const dirty = text !== null && text !== saved;
  // Whatever leads away: its own button, another tab, the browser's.
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next }) => dirty && (current.pathname !== next.pathname || PLACE.some((name) => textAt(current.search, name) !== textAt(next.search, name))),
    enableBeforeUnload: () => dirty,
    withResolver: true,
  });

  const timeNow = async () =>
    (await queries.fetchQuery({ ...filesQuery(sandboxId, folder), staleTime: 0 })).find((each) => each.path === entry.path)?.modified_at;
  const save = async (anyway = false) => {
    if (text === null || saving) return;
    setNewer(false);
    setSaving(true);
    try {
      // An agent may have changed it meanwhile.
      if (!anyway && (await timeNow()) !== knownTime) {
        setNewer(true);
        return;
      }
      await writeFile(sandboxId, entry.path, text);
      setSaved(text);
      setKnownTime((await timeNow()) ?? knownTime);
      done(`${entry.name} is saved`);
    } catch (error) {
      failed(`${entry.name} could not be saved`, error);
    } finally {
      setSaving(false);
    }
  };
  const download = (
    <Button icon={<Download aria-hidden className="size-4" />} onClick={() => void downloadFile(sandboxId, entry)}>
      Download
    </Button>
  );

  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line px-3 py-2">
        <Button small look="ghost" icon={<ArrowLeft aria-hidden className="size-4" />} onClick={onClose}>
          Back
        </Button>
        <h2 className="min-w-0 truncate font-mono text-[13px] font-semibold">{entry.path}</h2>
        <span className="text-xs text-muted">{dirty ? "not saved" : bytes(entry.size)}</span>
        <div className="ml-auto flex gap-2">
          {text !== null && (
            <Button look="primary" busy={saving} disabled={!dirty} icon={<Save aria-hidden className="size-4" />} onClick={() => void save()}>
              Save
            </Button>
          )}
          {download}
        </div>
      </div>
      {!small || content.data?.text === null ? (
        <EmptyState icon={FileQuestion} title={small ? "This is no text" : `${bytes(entry.size)} are too much to be shown`} action={download} />
      ) : content.error ? (
        <ErrorState error={content.error} onRetry={() => void content.refetch()} />
      ) : text === null ? (
        <SkeletonRows />
      ) : (
        <textarea
          aria-label={`Content of ${entry.name}`}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if ((event.ctrlKey || event.metaKey) && event.key === "s") {
              event.preventDefault();
              void save();
            }
          }}
          className="min-h-64 flex-1 resize-none bg-panel p-3 font-mono text-[13px] leading-5 outline-offset-[-2px]"
        />
      )}
      <ConfirmDialog
        open={leaving.status === "blocked"}
        onClose={() => leaving.reset?.()}
        onConfirm={() => leaving.proceed?.()}
        title={`Leave ${entry.name}?`}
        lost="What you changed is not saved and will be lost."
        action="Leave"
      />
      <ConfirmDialog
        open={newer}
        onClose={() => setNewer(false)}
        onConfirm={() => void save(true)}
        title={`${entry.name} was changed meanwhile`}
        lost="Somebody else wrote it after you opened it. Saving replaces what they wrote."
        action="Replace it"
      />
    </div>
  );
}
