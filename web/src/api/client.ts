// Every call to the server goes through here: CSRF token, one renewal of a login that is over, and one
// kind of error.
import createClient from "openapi-fetch";
import { capitalized } from "@/ui/format";
import { noteCall } from "./notes";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** An answer that is not 2xx, or no answer at all (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly debugId = "",
    readonly retryAfter = 0,
  ) {
    super(capitalized(message));
  }
  get signedOut() {
    return this.status === 401;
  }
}

function cookie(name: string): string {
  const found = document.cookie.split("; ").find((part) => part.startsWith(`${name}=`));
  return found ? decodeURIComponent(found.slice(name.length + 1)) : "";
}

function withCsrf(init: RequestInit): RequestInit {
  const headers = new Headers(init.headers);
  const token = cookie("caisson_csrf");
  if (token && init.method && init.method !== "GET") headers.set("X-CSRF-Token", token);
  return { ...init, headers, credentials: "same-origin" };
}

let renewal: Promise<boolean> | null = null;

/** A new access token for the one that is over; calls that come meanwhile share the attempt. */
function renew(): Promise<boolean> {
  renewal ??= fetch("/api/v1/auth/refresh", withCsrf({ method: "POST" }))
    .then((response) => response.ok)
    .catch(() => false)
    .finally(() => {
      renewal = null;
    });
  return renewal;
}

/** fetch() with the login. Throws ApiError if there is no answer; answers of any status are returned. */
export async function request(input: string | Request, init: RequestInit = {}): Promise<Response> {
  const base = input instanceof Request ? input : null;
  const method = init.method ?? base?.method ?? "GET";
  const body = base && method !== "GET" && method !== "HEAD" ? await base.clone().arrayBuffer() : init.body;
  const url = base ? base.url : (input as string);
  const attempt = () =>
    fetch(
      url,
      withCsrf({
        ...init,
        method,
        body: body instanceof ArrayBuffer && body.byteLength === 0 ? undefined : body,
        headers: init.headers ?? base?.headers,
        signal: init.signal ?? base?.signal,
      }),
    );
  const begun = performance.now();
  const note = (status: number) => noteCall({ method, path: new URL(url, location.href).pathname, status, ms: performance.now() - begun });
  try {
    const response = await attempt();
    note(response.status);
    const renewable = response.status === 401 && !url.includes("/auth/") && cookie("caisson_csrf");
    return renewable && (await renew()) ? await attempt() : response;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    note(0);
    throw new ApiError(0, "unreachable", "The server cannot be reached.");
  }
}

/** The error that an answer carries, in our shape or in E2B's. */
export async function errorOf(response: Response): Promise<ApiError> {
  return errorFrom(response, await response.json().catch(() => null));
}

// biome-ignore lint/suspicious/noExplicitAny: it may be anything
function errorFrom(response: Response, body: any): ApiError {
  const ours = body?.error;
  return new ApiError(
    response.status,
    ours?.code ?? "unknown",
    ours?.message ?? body?.message ?? `The server answered ${response.status}.`,
    ours?.debug_id ?? response.headers.get("X-Request-Id") ?? "",
    Number(response.headers.get("Retry-After") ?? 0),
  );
}

const client = createClient<paths>({ fetch: (input: Request) => request(input) });

/** Typed calls: `await data(api.GET("/api/v1/tasks/{id}", {params: {path: {id}}}))`. */
export const api = client;

/** What a call answered; throws ApiError for anything but 2xx. */
export async function data<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data: value, error, response } = await call;
  if (!response.ok) throw errorFrom(response, error);
  return value as T;
}

/** JSON from a path that the API's description does not have (E2B's routes). */
export async function json<T>(path: string, init: RequestInit & { json?: unknown } = {}): Promise<T> {
  const { json: body, ...rest } = init;
  const response = await request(path, {
    ...rest,
    ...(body === undefined
      ? {}
      : { method: rest.method ?? "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
  });
  if (!response.ok) throw await errorOf(response);
  return (response.status === 204 ? undefined : await response.json().catch(() => undefined)) as T;
}
