// The addresses of the page. Each screen is a chunk of its own. Filters, tabs and selections live in the
// search part, so that every view can be linked to.
import { type QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { ApiError } from "@/api/client";
import { meQuery } from "@/api/queries";
import { NotFound } from "@/screens/NotFound";
import { SignIn } from "@/screens/SignIn";
import { Shell } from "@/shell/Shell";
import { ErrorState } from "@/ui/states";

type Search = Record<string, string | undefined>;

/** Search parameters are texts; what a screen does with them is its own business. */
const texts = (search: Record<string, unknown>): Search =>
  Object.fromEntries(Object.entries(search).map(([name, value]) => [name, value == null ? undefined : String(value)]));

const root = createRootRouteWithContext<{ queries: QueryClient }>()({});

const signIn = createRoute({ getParentRoute: () => root, path: "/sign-in", component: SignIn, validateSearch: texts });

const shared = createRoute({
  getParentRoute: () => root,
  path: "/shared/$token",
  component: lazyRouteComponent(() => import("@/screens/shared/Shared")),
  validateSearch: texts,
});

const shell = createRoute({
  getParentRoute: () => root,
  id: "shell",
  component: Shell,
  beforeLoad: async ({ context, location }) => {
    try {
      await context.queries.ensureQueryData(meQuery);
    } catch (error) {
      if (error instanceof ApiError && error.signedOut)
        throw redirect({ to: "/sign-in", search: { next: location.pathname + location.searchStr }, hash: location.hash });
      throw error;
    }
  },
  errorComponent: ({ error, reset }) => <ErrorState screen error={error} onRetry={reset} title="The server cannot be used now" />,
});

const screen = <Path extends string>(path: Path, load: () => Promise<Record<string, any>>) =>
  createRoute({ getParentRoute: () => shell, path, component: lazyRouteComponent(load), validateSearch: texts });

const routes = root.addChildren([
  signIn,
  shared,
  shell.addChildren([
    screen("/", () => import("@/screens/home/Home")),
    screen("/board", () => import("@/screens/board/Board")),
    screen("/work", () => import("@/screens/work/Work")),
    screen("/work/$taskId", () => import("@/screens/work/Work")),
    screen("/work/session/$sessionId", () => import("@/screens/work/Work")),
    screen("/approvals", () => import("@/screens/approvals/Approvals")),
    screen("/pulls", () => import("@/screens/pulls/Pulls")),
    screen("/builds", () => import("@/screens/builds/Builds")),
    screen("/builds/$buildId", () => import("@/screens/builds/Build")),
    screen("/sandboxes", () => import("@/screens/sandboxes/Sandboxes")),
    screen("/sandboxes/$sandboxId", () => import("@/screens/sandboxes/Sandbox")),
    screen("/runs", () => import("@/screens/runs/Runs")),
    screen("/runs/$runId", () => import("@/screens/runs/Run")),
    screen("/templates", () => import("@/screens/templates/Templates")),
    screen("/costs", () => import("@/screens/costs/Costs")),
    screen("/health", () => import("@/screens/health/Health")),
    screen("/audit", () => import("@/screens/audit/Audit")),
    screen("/settings", () => import("@/screens/settings/Settings")),
    screen("/settings/$section", () => import("@/screens/settings/Settings")),
    createRoute({ getParentRoute: () => shell, path: "$", component: NotFound }),
  ]),
]);

// Plain parameters: `?device=768`, not the router's own `?device=%22768%22`.
const parseSearch = (text: string): Search => Object.fromEntries(new URLSearchParams(text));

function stringifySearch(search: Search): string {
  const given = Object.entries(search).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length > 0 ? `?${new URLSearchParams(given)}` : "";
}

export const makeRouter = (queries: QueryClient) =>
  createRouter({ routeTree: routes, basepath: "/app", context: { queries }, defaultPreload: "intent", scrollRestoration: true, parseSearch, stringifySearch });

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
