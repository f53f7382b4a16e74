// First: libraries make style elements as soon as they are loaded.
import "@/nonce";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { Tooltip } from "radix-ui";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Toaster } from "sonner";
import { ApiError } from "@/api/client";
import { keys } from "@/api/queries";
import { makeRouter } from "@/router";
import { useTheme } from "@/shell/theme";
import "@/theme.css";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Events tell what became stale; the clock does not.
      staleTime: 60_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => (!(error instanceof ApiError) || error.status === 0 || error.status >= 500) && count < 2,
    },
  },
});
// A login that is over leads to the sign-in, from whatever call noticed it.
queries.getQueryCache().subscribe(({ query }) => {
  const error = query.state.error;
  if (query.queryKey[0] === keys.me[0]) return; // the router asks for it, and leads there itself
  if (error instanceof ApiError && error.signedOut && !/^\/app\/(sign-in|shared)/.test(location.pathname))
    location.assign(`/app/sign-in?next=${encodeURIComponent(location.pathname.replace(/^\/app/, "") + location.search)}`);
});
const router = makeRouter(queries);

function App() {
  const dark = useTheme((state) => state.dark);
  return (
    <QueryClientProvider client={queries}>
      <Tooltip.Provider delayDuration={400}>
        <RouterProvider router={router} />
        <Toaster position="bottom-right" theme={dark ? "dark" : "light"} closeButton />
      </Tooltip.Provider>
    </QueryClientProvider>
  );
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
