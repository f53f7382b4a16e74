// node embed.mjs DIST PAGE_CC: makes a C++ file of the built page, each file as it is, with gzip and with
// brotli. String literals, because ccache does not look into files that are embedded in other ways.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const [dist, output] = process.argv.slice(2);
const TYPES = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".html": "text/html; charset=utf-8",
};

const files = (folder) =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });

// Octal escapes of three digits cannot swallow the character behind them.
const escape = (byte) =>
  byte === 0x22 || byte === 0x5c || byte === 0x3f || byte < 0x20 || byte > 0x7e
    ? `\\${byte.toString(8).padStart(3, "0")}`
    : String.fromCharCode(byte);

function literal(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 4096) {
    let line = "";
    for (const byte of bytes.subarray(at, at + 4096)) line += escape(byte);
    lines.push(`"${line}"`);
  }
  return `{${lines.join("\n") || '""'}, ${bytes.length}}`;
}

const brotli = (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });

const entries = files(dist)
  .sort()
  .map((path) => {
    const bytes = readFileSync(path);
    const type = TYPES[extname(path)];
    if (!type) throw new Error(`${path}: no content type is known for it`);
    return `{"/${relative(dist, path)}", "${type}",\n${literal(bytes)},\n${literal(gzipSync(bytes, { level: 9 }))},\n${literal(brotli(bytes))}},\n`;
  });

writeFileSync(
  output,
  `// Made from web/ by web/embed.mjs.\n#include "cli/page.h"\n\nnamespace caisson::cli {\nnamespace {\n\nconst PageFile kFiles[] = {\n${entries.join("")}};\n\n}  // namespace\n\nconst std::span<const PageFile> kPageFiles{kFiles};\n\n}  // namespace caisson::cli\n`,
);
