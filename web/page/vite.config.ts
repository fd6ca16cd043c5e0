import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const DIST = fileURLToPath(new URL("../dist", import.meta.url));

/** Leaves the folder with what was built and nothing else, each part also compressed; hidden files are the repository's. */
function whatTheBinaryEmbeds(): Plugin {
  return {
    name: "what-the-binary-embeds",
    apply: "build",
    buildStart() {
      for (const name of readdirSync(DIST)) if (!name.startsWith(".")) rmSync(join(DIST, name), { recursive: true });
    },
    closeBundle() {
      for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || entry.name.startsWith(".")) continue;
        const file = join(entry.parentPath, entry.name);
        const whole = readFileSync(file);
        const compressed = gzipSync(whole, { level: 9 });
        if (compressed.length < whole.length) writeFileSync(`${file}.gz`, compressed);
      }
    },
  };
}

export default defineConfig({
  // Relative, so that a proxy may serve the page below any path.
  base: "./",
  resolve: {
    alias: { "@gembridge/client": fileURLToPath(new URL("../client/src/index.ts", import.meta.url)) },
  },
  logLevel: "warn",
  plugins: [whatTheBinaryEmbeds()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: DIST,
    emptyOutDir: false,
    target: "es2022",
    // The policy of the page allows no data: scripts and fonts, and no inline ones.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
