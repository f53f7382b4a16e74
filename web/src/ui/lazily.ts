import { type ComponentType, lazy } from "react";

const TRIES = 3;
const PAUSE_MS = 700;

/** As lazy(), but a piece of the page that did not arrive is asked for again: a browser drops what it is loading
 * when the network changes, and on the host of the sandboxes it does with each of them. */
// biome-ignore lint/suspicious/noExplicitAny: of whatever properties
export function lazily<Component extends ComponentType<any>>(load: () => Promise<{ default: Component }>) {
  const attempt = (left: number): Promise<{ default: Component }> =>
    load().catch(async (error: unknown) => {
      if (left <= 1) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      return attempt(left - 1);
    });
  return lazy(() => attempt(TRIES));
}
