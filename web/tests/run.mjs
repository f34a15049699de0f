// Runs what is written in TypeScript below tests: esbuild makes a script of each file, Node runs it.
//   node tests/run.mjs unit | browser | cluster | fake | bench [option...]
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const [what, ...options] = process.argv.slice(2);
const out = path.join(root, 'node_modules', '.swell-tests', `${what}-${process.pid}`);
const program = what === 'fake' ? 'tests/fake/main.ts' : what === 'bench' ? 'tests/bench/figures.ts' : '';
const entries = program
  ? [program]
  : what === 'unit' || what === 'browser' || what === 'cluster'
    ? readdirSync(path.join(root, 'tests', what))
        .filter((name) => name.endsWith('.test.ts'))
        .sort()
        .map((name) => `tests/${what}/${name}`)
    : [];
if (entries.length === 0) {
  console.error('Usage: node tests/run.mjs unit | browser | cluster | fake | bench [option...]');
  process.exit(2);
}
await build({
  absWorkingDir: root,
  entryPoints: entries,
  outdir: out,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node18',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  packages: 'external',
  logLevel: 'warning',
});
const made = readdirSync(out)
  .filter((name) => name.endsWith('.mjs'))
  .sort()
  .map((name) => path.join(out, name));
const run = spawnSync(
  process.execPath,
  [
    ...(program
      ? []
      : ['--test', ...(Number(process.versions.node.split('.')[0]) >= 20 ? ['--test-concurrency=1'] : [])]),
    ...(program ? [...made, ...options] : [...options, ...made]),
  ],
  { cwd: root, stdio: 'inherit', env: process.env },
);
rmSync(out, { recursive: true, force: true });
process.exit(run.status ?? 1);
