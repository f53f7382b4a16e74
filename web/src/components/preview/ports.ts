import { queryOptions } from "@tanstack/react-query";
import { api, data } from "@/api/client";

/** What is listened on in a sandbox, and the ports that have a name. Not under the sandbox: while it changes, its ports cannot be read. */
export const portsQuery = (id: string) =>
  queryOptions({
    queryKey: ["ports", id],
    queryFn: () => data(api.GET("/api/v1/sandboxes/{id}/ports", { params: { path: { id } } })),
  });
