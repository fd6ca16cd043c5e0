import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "vite";

/** A module of the page, built as the page is, so that it can be run here. */
export async function built(path) {
  const entry = fileURLToPath(new URL(path, import.meta.url));
  const outDir = mkdtempSync(join(dirname(fileURLToPath(import.meta.url)), ".built-"));
  try {
    await build({ configFile: false, logLevel: "error", build: { outDir, lib: { entry, formats: ["es"], fileName: "module" }, minify: false } });
    return await import(pathToFileURL(join(outDir, "module.js")).href);
  } finally {
    rmSync(outDir, { recursive: true });
  }
}
