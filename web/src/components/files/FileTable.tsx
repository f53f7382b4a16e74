import { Download, File, Folder } from "lucide-react";
import { IconButton } from "@/ui/button";
import { bytes } from "@/ui/format";
import { Ago } from "@/ui/time";
import type { Entry } from "./calls";

export function FileTable({ entries, onOpen, onDownload }: {
  entries: Entry[];
  onOpen: (entry: Entry) => void;
  onDownload: (entry: Entry) => void;
}) {
  return (
    <table className="w-full">
      <thead className="text-left text-xs text-muted">
        <tr>
          <th className="px-3 py-1.5 font-medium">Name</th>
          <th className="px-3 py-1.5 text-right font-medium">Size</th>
          <th className="hidden px-3 py-1.5 font-medium sm:table-cell">Changed</th>
          <th className="hidden px-3 py-1.5 font-medium md:table-cell">Mode</th>
          <th className="w-10">
            <span className="sr-only">Download</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => {
          const folder = entry.type === "directory";
          const Icon = folder ? Folder : File;
          return (
            <tr key={entry.path} className="border-t border-line hover:bg-hover">
              <td className="max-w-0 px-1 py-0.5 sm:max-w-sm">
                <button type="button" onClick={() => onOpen(entry)} className="flex min-h-7 w-full min-w-0 items-center gap-2 px-2 text-left hover:underline">
                  <Icon aria-label={folder ? "Folder" : "File"} className={folder ? "size-4 shrink-0 text-accent" : "size-4 shrink-0 text-muted"} />
                  <span className="truncate">{entry.name}</span>
                </button>
              </td>
              <td className="px-3 text-right whitespace-nowrap text-muted tabular-nums">{folder ? "" : bytes(entry.size)}</td>
              <td className="hidden px-3 text-muted sm:table-cell">
                <Ago time={entry.modified_at} />
              </td>
              <td className="hidden px-3 font-mono text-xs text-muted md:table-cell">{entry.mode}</td>
              <td className="px-1">
                {!folder && (
                  <IconButton label={`Download ${entry.name}`} small onClick={() => onDownload(entry)}>
                    <Download aria-hidden className="size-4" />
                  </IconButton>
                )}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
