// The fake server by itself: node tests/run.mjs fake [--jobs N] [--port N]
import path from 'node:path';
import { CODE, startFake } from './server.ts';

const option = (name: string, usual: number) => {
  const at = process.argv.indexOf(name);
  return at > 0 ? Number(process.argv[at + 1]) : usual;
};
const fake = await startFake(path.resolve('dist'), option('--jobs', 60), option('--port', 0));
console.log(`${fake.url}/#code=${CODE}`);
