// Builds src into dist: one script, one style sheet, one page. The same sources and packages give
// the same bytes. `node build.mjs [--watch] [--out DIR]`.
import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const BUDGET_BYTES = 120_000;

const options = {
  absWorkingDir: here,
  entryPoints: ['src/main.tsx'],
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['es2022'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  charset: 'utf8',
  write: false,
  outdir: 'out',
  define: { 'process.env.NODE_ENV': '"production"' },
};

function hashed(name, contents) {
  const hash = createHash('sha256').update(contents).digest('hex').slice(0, 10);
  const dot = name.lastIndexOf('.');
  return `${name.slice(0, dot)}-${hash}${name.slice(dot)}`;
}

async function write(result, out) {
  const icon = await readFile(path.join(here, 'src/icon.svg'));
  const files = new Map();
  const names = {};
  for (const file of result.outputFiles) {
    const kind = path.extname(file.path).slice(1);
    names[kind] = hashed(`app.${kind}`, file.contents);
    files.set(`assets/${names[kind]}`, Buffer.from(file.contents));
  }
  names.icon = hashed('icon.svg', icon);
  files.set(`assets/${names.icon}`, icon);
  const page = (await readFile(path.join(here, 'src/index.html'), 'utf8'))
    .replace('APP.js', names.js)
    .replace('APP.css', names.css)
    .replace('ICON.svg', names.icon);
  files.set('index.html', Buffer.from(page));
  await rm(out, { recursive: true, force: true });
  let total = 0;
  for (const [name, contents] of files) {
    const to = path.join(out, name);
    await mkdir(path.dirname(to), { recursive: true });
    await writeFile(to, contents);
    total += gzipSync(contents, { level: 9 }).length;
  }
  console.log(`${out}: ${files.size} files, ${(total / 1000).toFixed(1)} kB gzipped`);
  if (total > BUDGET_BYTES) throw new Error(`${total} bytes gzipped; at most ${BUDGET_BYTES} are allowed`);
}

const outAt = process.argv.indexOf('--out');
const out = outAt > 0 ? path.resolve(process.argv[outAt + 1]) : path.join(here, 'dist');
if (process.argv.includes('--watch')) {
  const again = {
    name: 'write',
    setup: (build) => build.onEnd((result) => (result.errors.length ? undefined : write(result, out))),
  };
  await (await esbuild.context({ ...options, plugins: [again] })).watch();
} else {
  await write(await esbuild.build(options), out);
}
