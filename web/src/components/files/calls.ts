// Files of a sandbox over the API.
import { queryOptions } from "@tanstack/react-query";
import { api, data, errorOf, request, type Schemas } from "@/api/client";

export type Entry = Schemas["FileList"]["files"][number];

const address = (sandboxId: string, path: string) =>
  `/api/v1/sandboxes/${sandboxId}/files?path=${encodeURIComponent(path)}`;

export const filesQuery = (sandboxId: string, path: string) =>
  queryOptions({
    // Not under the sandbox: its events say nothing about files, and while it is paused they cannot be read.
    queryKey: ["files", sandboxId, path],
    queryFn: async () =>
      (await data(api.GET("/api/v1/sandboxes/{id}/files/list", { params: { path: { id: sandboxId }, query: { path } as never } }))).files,
  });

export async function readFile(sandboxId: string, path: string): Promise<ArrayBuffer> {
  const response = await request(address(sandboxId, path));
  if (!response.ok) throw await errorOf(response);
  return response.arrayBuffer();
}

export async function writeFile(sandboxId: string, path: string, content: BodyInit) {
  const response = await request(address(sandboxId, path), {
    method: "PUT",
    body: content,
    headers: { "Content-Type": "application/octet-stream" },
  });
  if (!response.ok) throw await errorOf(response);
}

/** The browser reads it to disk by itself, however big it is. The call before renews a login that is over. */
export async function downloadFile(sandboxId: string, entry: Entry) {
  await data(api.GET("/api/v1/auth/me"));
  const link = document.createElement("a");
  link.href = address(sandboxId, entry.path);
  link.download = entry.name;
  link.click();
}

export async function makeFolder(sandboxId: string, path: string) {
  const result = await data(
    api.POST("/api/v1/sandboxes/{id}/execute", { params: { path: { id: sandboxId } }, body: { argv: ["mkdir", "--", path] } as never }),
  );
  if (result.exit_code !== 0) throw new Error(result.stderr.trim() || "The folder could not be made.");
}
