// Bundles src/ into page.js and page.css, which are committed: users need no Node. `npm install && npm run build`.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const outdir = process.argv[2] ?? here;

// What the bundle was made of; a test compares it with the sources, also where there is no Node.
const hash = createHash("sha256");
for (const name of ["build.mjs", ...readdirSync(join(here, "src")).sort().map((file) => `src/${file}`)]) {
  hash.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
}
const banner = `/* memgraph's page, made by build.mjs; sources sha256: ${hash.digest("hex")} */`;

await build({
  entryPoints: [join(here, "src/main.js"), join(here, "src/page.css")],
  entryNames: "page",
  outdir,
  bundle: true,
  minify: true,
  charset: "ascii",
  format: "iife",
  target: ["es2022", "chrome111", "firefox115", "safari16.4"],
  banner: { js: banner, css: banner },
  legalComments: "none",
  logLevel: "warning",
});
