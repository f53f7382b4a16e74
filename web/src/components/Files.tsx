import { useQuery, useQueryClient } from "@tanstack/react-query";
import { FileQuestion, FolderOpen, FolderPlus, RotateCw, Upload } from "lucide-react";
import { type DragEvent, useRef, useState } from "react";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/classes";
import { Dialog } from "@/ui/dialog";
import { Field, Input } from "@/ui/field";
import { plural } from "@/ui/format";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { done, failed } from "@/ui/toast";
import { useUrl } from "@/ui/url";
import { downloadFile, type Entry, filesQuery, makeFolder, writeFile } from "./files/calls";
import { Editor } from "./files/Editor";
import { FileTable } from "./files/FileTable";
import { crumbs, join, ordered } from "./files/paths";

function Breadcrumbs({ path, onOpen }: { path: string; onOpen: (path: string) => void }) {
  const all = crumbs(path);
  return (
    <nav aria-label="Folder" className="flex min-w-0 flex-1 flex-wrap items-center font-mono text-[13px]">
      {all.map((crumb, index) => (
        <span key={crumb.path} className="flex items-center">
          {index > 1 && <span className="text-muted">/</span>}
          <button
            type="button"
            onClick={() => onOpen(crumb.path)}
            aria-current={index === all.length - 1 ? "page" : undefined}
            className="square min-h-6 min-w-6 rounded px-1 hover:bg-hover aria-[current]:font-semibold"
          >
            {crumb.name}
          </button>
        </span>
      ))}
    </nav>
  );
}

function FolderDialog({ onClose, onMake }: { onClose: () => void; onMake: (name: string) => Promise<void> }) {
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    await onMake(name.trim());
    setBusy(false);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="New folder"
      footer={
        <Button look="primary" busy={busy} disabled={!name.trim() || name.includes("/")} onClick={() => void make()}>
          Create
        </Button>
      }
    >
      <Field label="Name" error={name.includes("/") ? "A name has no slash." : undefined}>
        <Input autoFocus value={name} onChange={(event) => setName(event.target.value)} onKeyDown={(event) => event.key === "Enter" && void make()} />
      </Field>
    </Dialog>
  );
}

/** Writes files into a folder, one after the other. */
function useUpload(sandboxId: string, path: string, refresh: () => void) {
  const [uploading, setUploading] = useState("");
  const upload = async (files: File[]) => {
    let count = 0;
    for (const file of files) {
      setUploading(file.name);
      try {
        await writeFile(sandboxId, join(path, file.name), file);
        count += 1;
      } catch (error) {
        failed(`${file.name} could not be uploaded`, error);
      }
    }
    setUploading("");
    if (count) done(`${plural(count, "file")} uploaded`);
    refresh();
  };
  return { uploading, upload };
}

/** The file of the address. Once it is open it stays as it was found, whatever the folder is told to be later. */
function OpenFile({ sandboxId, folder, name, entries, onClose }: {
  sandboxId: string;
  folder: string;
  name: string;
  entries: Entry[];
  onClose: () => void;
}) {
  const [entry] = useState(() => entries.find((each) => each.name === name));
  if (entry) return <Editor sandboxId={sandboxId} folder={folder} entry={entry} onClose={onClose} />;
  return <EmptyState icon={FileQuestion} title={`There is no ${name} in ${folder}`} action={<Button onClick={onClose}>Show the folder</Button>} />;
}

/** The files of a sandbox: browse, upload by drop, download, edit small texts. Folder and file are in the URL. */
export function Files({ sandboxId, root = "/home/user" }: { sandboxId: string; root?: string }) {
  const [url, change] = useUrl();
  const queries = useQueryClient();
  const path = url.path ?? root;
  const files = useQuery({ ...filesQuery(sandboxId, path), staleTime: 0 });
  const [naming, setNaming] = useState(false);
  const [over, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const refresh = () => void queries.invalidateQueries({ queryKey: filesQuery(sandboxId, path).queryKey });
  const { uploading, upload } = useUpload(sandboxId, path, refresh);
  const go = (to: string) => change({ path: to === root ? undefined : to, file: undefined }, { push: true });

  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void upload([...event.dataTransfer.files]);
  };
  const newFolder = async (name: string) => {
    try {
      await makeFolder(sandboxId, join(path, name));
      setNaming(false);
    } catch (error) {
      failed("The folder could not be created", error);
    }
    refresh();
  };

  if (url.file && files.data)
    return <OpenFile key={`${path}/${url.file}`} sandboxId={sandboxId} folder={path} name={url.file} entries={files.data} onClose={() => change({ file: undefined })} />;
  return (
    <section
      aria-label="Files"
      className={cx("flex h-full min-h-0 flex-col", over && "outline-2 -outline-offset-4 outline-accent outline-dashed")}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => !event.currentTarget.contains(event.relatedTarget as Node) && setOver(false)}
      onDrop={drop}
    >
      <div className="flex shrink-0 flex-wrap items-center gap-1 border-b border-line px-3 py-1.5">
        <Breadcrumbs path={path} onOpen={go} />
        <span role="status" className="text-xs text-muted">
          {uploading && `Uploading ${uploading}`}
        </span>
        <IconButton label="Read again" small onClick={() => void files.refetch()}>
          <RotateCw aria-hidden className={cx("size-4", files.isFetching && "animate-spin")} />
        </IconButton>
        <IconButton label="New folder" small onClick={() => setNaming(true)}>
          <FolderPlus aria-hidden className="size-4" />
        </IconButton>
        <Button small busy={uploading !== ""} icon={<Upload aria-hidden className="size-4" />} onClick={() => picker.current?.click()}>
          Upload
        </Button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files to upload"
          onChange={(event) => {
            void upload([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <div className="min-h-0 flex-1 overflow-auto" tabIndex={0} role="region" aria-label={`Content of ${path}`}>
        {files.error ? (
          <ErrorState error={files.error} onRetry={() => void files.refetch()} title="The folder could not be read" />
        ) : !files.data ? (
          <SkeletonRows />
        ) : files.data.length === 0 ? (
          <EmptyState icon={FolderOpen} title="This folder is empty">
            Drop files here to upload them.
          </EmptyState>
        ) : (
          <FileTable
            entries={ordered(files.data)}
            onOpen={(entry) => (entry.type === "directory" ? go(entry.path) : change({ file: entry.name }, { push: true }))}
            onDownload={(entry) => void downloadFile(sandboxId, entry).catch((error) => failed(`${entry.name} could not be read`, error))}
          />
        )}
      </div>
      {naming && <FolderDialog onClose={() => setNaming(false)} onMake={newFolder} />}
    </section>
  );
}
