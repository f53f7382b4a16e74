import { Check } from "lucide-react";
import { useMemo } from "react";
import { cx } from "@/ui/classes";
import { SearchInput } from "@/ui/field";
import { useParam } from "@/ui/url";
import { Counts, FILE_LOOKS } from "./DiffFile";
import type { PatchFile } from "./patch";

interface Folder {
  name: string;
  folders: Map<string, Folder>;
  files: { file: PatchFile; index: number }[];
}

/** Files by folder; folders with nothing but one folder are one line. */
function treeOf(entries: { file: PatchFile; index: number }[]): Folder {
  const root: Folder = { name: "", folders: new Map(), files: [] };
  for (const entry of entries) {
    let folder = root;
    for (const name of entry.file.path.split("/").slice(0, -1)) {
      let next = folder.folders.get(name);
      if (!next) folder.folders.set(name, (next = { name, folders: new Map(), files: [] }));
      folder = next;
    }
    folder.files.push(entry);
  }
  return root;
}

function squeezed(folder: Folder): Folder {
  const only = folder.folders.size === 1 && folder.files.length === 0 ? [...folder.folders.values()][0] : undefined;
  return only ? squeezed({ ...only, name: `${folder.name}/${only.name}` }) : folder;
}

export function FileTree({ files, viewed, onPick }: {
  files: PatchFile[];
  viewed: (file: PatchFile) => boolean;
  onPick: (index: number) => void;
}) {
  const [wanted = "", setWanted] = useParam("changed");
  const tree = useMemo(() => {
    const text = wanted.trim().toLowerCase();
    return treeOf(files.map((file, index) => ({ file, index })).filter(({ file }) => file.path.toLowerCase().includes(text)));
  }, [files, wanted]);
  const empty = tree.folders.size === 0 && tree.files.length === 0;
  return (
    <nav aria-label="Changed files" className="flex h-full min-h-0 flex-col">
      <SearchInput label="Find a file" placeholder="Find a file" value={wanted} onChange={(event) => setWanted(event.target.value)} className="m-2 shrink-0" />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys */}
      <div className="min-h-0 flex-1 overflow-y-auto px-1 pb-2" tabIndex={0} role="group" aria-label="Files">
        {empty ? <p className="px-3 py-2 text-muted">No file is called that.</p> : <Level folder={tree} viewed={viewed} onPick={onPick} />}
      </div>
    </nav>
  );
}

function Level({ folder, viewed, onPick }: { folder: Folder; viewed: (file: PatchFile) => boolean; onPick: (index: number) => void }) {
  return (
    <ul className={cx(folder.name && "ml-3 border-l border-line pl-1")}>
      {[...folder.folders.values()].map(squeezed).map((each) => (
        <li key={each.name}>
          <p className="truncate px-2 py-1 text-xs text-muted" title={each.name}>
            {each.name}
          </p>
          <Level folder={each} viewed={viewed} onPick={onPick} />
        </li>
      ))}
      {folder.files.map(({ file, index }) => {
        const look = FILE_LOOKS[file.status];
        return (
          <li key={file.path}>
            <button
              type="button"
              onClick={() => onPick(index)}
              className="flex h-7 w-full items-center gap-1.5 rounded px-2 text-left text-[13px] hover:bg-hover"
            >
              <look.icon aria-label={look.word} className={cx("size-3.5 shrink-0", look.tone)} />
              <span className="min-w-0 flex-1 truncate" title={file.path}>
                {file.path.split("/").at(-1)}
              </span>
              {viewed(file) && <Check aria-label="Viewed" className="size-3.5 shrink-0 text-muted" />}
              {file.binary ? <span className="text-xs text-muted">binary</span> : <Counts additions={file.additions} deletions={file.deletions} />}
            </button>
          </li>
        );
      })}
    </ul>
  );
}
