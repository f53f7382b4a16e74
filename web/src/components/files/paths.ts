export const join = (folder: string, name: string) => (folder === "/" ? `/${name}` : `${folder}/${name}`);

/** The folders of a path with their own paths, from the root on. */
export function crumbs(path: string): { name: string; path: string }[] {
  const parts = path.split("/").filter(Boolean);
  return [{ name: "/", path: "/" }, ...parts.map((name, index) => ({ name, path: `/${parts.slice(0, index + 1).join("/")}` }))];
}

/** Folders first, then by name. */
export function ordered<Entry extends { name: string; type: string }>(entries: Entry[]): Entry[] {
  return entries.toSorted(
    (a, b) => Number(b.type === "directory") - Number(a.type === "directory") || a.name.localeCompare(b.name),
  );
}

/** The text of a file, or null if it is none. */
export function asText(bytes: ArrayBuffer): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
