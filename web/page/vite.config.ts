import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

export default defineConfig({
  // Relative, so that a proxy may serve the page below any path.
  base: "./",
  resolve: {
    alias: { "@gembridge/client": fileURLToPath(new URL("../client/src/index.ts", import.meta.url)) },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2022",
    // The policy of the page allows no data: scripts and fonts, and no inline ones.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
