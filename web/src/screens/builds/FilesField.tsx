import { FileText, FolderUp, Upload, X } from "lucide-react";
import { useRef, useState } from "react";
import { Button, IconButton } from "@/ui/button";
import { Field, Input, Textarea } from "@/ui/field";
import { bytes, plural } from "@/ui/format";
import { failed } from "@/ui/toast";
import { readFiles } from "./request";

type Files = Record<string, string>;

/** Files of this computer, or written here. */
export function FilesField({ files, onChange, error }: { files: Files; onChange: (files: Files) => void; error?: string }) {
  const some = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const [path, setPath] = useState("index.html");
  const [content, setContent] = useState("");
  const add = async (list: FileList | null) => {
    if (!list) return;
    const read = await readFiles(list);
    onChange({ ...files, ...read.files });
    if (read.refused.length > 0) failed(`${plural(read.refused.length, "file")} left out`, `Only texts of at most 8 MB together: ${read.refused.slice(0, 5).join(", ")}`);
  };
  const write = () => {
    onChange({ ...files, [path.trim()]: content });
    setContent("");
  };
  const names = Object.keys(files).sort();
  return (
    <fieldset className="mb-3 rounded-md border border-line p-3">
      <legend className="px-1 text-[13px] font-medium">Files</legend>
      <div
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          void add(event.dataTransfer.files);
        }}
        className="mb-2 flex flex-wrap items-center gap-2"
      >
        <Button small icon={<Upload aria-hidden className="size-4" />} onClick={() => some.current?.click()}>
          Choose files
        </Button>
        <Button small icon={<FolderUp aria-hidden className="size-4" />} onClick={() => folder.current?.click()}>
          Choose a folder
        </Button>
        <span className="text-xs text-muted">or drop them here</span>
        <input ref={some} type="file" multiple hidden aria-label="Files to build" onChange={(event) => void add(event.target.files)} />
        <input
          ref={(element) => {
            folder.current = element;
            element?.setAttribute("webkitdirectory", "");
          }}
          type="file"
          hidden
          aria-label="Folder to build"
          onChange={(event) => void add(event.target.files)}
        />
      </div>
      {names.length > 0 && (
        <ul className="mb-2 max-h-40 overflow-y-auto rounded bg-sunken p-1" aria-label="Chosen files">
          {names.map((name) => (
            <li key={name} className="flex items-center gap-2 px-2 text-[13px]">
              <FileText aria-hidden className="size-3.5 text-muted" />
              <span className="min-w-0 flex-1 truncate font-mono">{name}</span>
              <span className="text-xs text-muted">{bytes(files[name]?.length ?? 0)}</span>
              <IconButton
                small
                label={`Leave out ${name}`}
                onClick={() => {
                  const { [name]: _, ...rest } = files;
                  onChange(rest);
                }}
              >
                <X aria-hidden className="size-3.5" />
              </IconButton>
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary className="cursor-pointer py-1 text-[13px] text-muted">Write a file here</summary>
        <Field label="Path">
          <Input className="font-mono" value={path} onChange={(event) => setPath(event.target.value)} />
        </Field>
        <Field label="Content">
          <Textarea rows={5} className="font-mono text-[13px]" value={content} onChange={(event) => setContent(event.target.value)} />
        </Field>
        <Button small disabled={!path.trim() || !content} onClick={write}>
          Add the file
        </Button>
      </details>
      {error && <p className="mt-1 text-xs text-bad">{error}</p>}
    </fieldset>
  );
}
