import { queryOptions } from "@tanstack/react-query";
import { type Schemas, errorOf, request } from "@/api/client";
import { keys } from "@/api/queries";

export type DetailedHealth = Schemas["DetailedHealth"];

/** The server's own checks. A server that is `down` answers 503 with the same content. */
export const healthQuery = queryOptions({
  queryKey: keys.health,
  queryFn: async () => {
    const response = await request("/api/v1/health/detailed");
    if (!response.ok && response.status !== 503) throw await errorOf(response);
    return (await response.json()) as DetailedHealth;
  },
  // Health is the one thing that no event tells.
  refetchInterval: 15_000,
});
