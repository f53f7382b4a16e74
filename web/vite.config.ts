import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `npm run dev` with CAISSON_URL=http://127.0.0.1:8000 shows the page of a running server, reloading as
// files change.
const server = process.env.CAISSON_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  base: "/app/",
  plugins: [react(), tailwindcss()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: process.env.PAGE_OUT_DIR ?? "dist",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 1000,
    assetsInlineLimit: 0,
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/sandboxes", "/v2", "/v3", "/templates", "/snapshots", "/docs"].map((path) => [
        path,
        { target: server, ws: true, changeOrigin: true, headers: { origin: server } },
      ]),
    ),
  },
});
