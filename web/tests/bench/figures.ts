// What a browser measures of a running cluster's pages, for tools/bench: node tests/run.mjs bench URL ROUNDS.
// - Prints one JSON line: when something was first painted and the overview had its numbers, when a decision was seen
//   after it was made, and how fast 10,000 made-up workloads scroll.
// - Then holds ten tabs open until its input ends, so that others can measure what they cost the server.
import path from 'node:path';
import type { Page } from 'playwright-core';
import { launch } from '../browser/fixture.ts';
import { JOBS, scrollWorkloads, type Scroll } from '../browser/scroll.ts';
import { CODE, startFake } from '../fake/server.ts';

const [url = '', rounds = '5'] = process.argv.slice(2);
const ROUNDS = Number(rounds);
const TABS = [
  '/',
  '/workloads',
  '/projects',
  '/nodepools',
  '/nodes',
  '/analytics',
  '/events',
  '/',
  '/workloads',
  '/projects',
];
const JOB = (name: string) => ({
  apiVersion: 'kubeflow.org/v1',
  kind: 'PyTorchJob',
  metadata: { name, namespace: 'default' },
  spec: {
    pytorchReplicaSpecs: {
      Worker: {
        replicas: 1,
        template: {
          metadata: { annotations: { 'swell.dev/run-seconds': '600' } },
          spec: { containers: [{ name: 'pytorch', image: 'i' }] },
        },
      },
    },
  },
});
const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? -1;

// From the moment when a watch reports the pod's node until the row shows it.
async function decisionSeen(page: Page, name: string): Promise<number> {
  await page.goto(new URL(`/workloads?q=${name}`, page.url()).href);
  await page.waitForSelector('.live.is-live');
  return page.evaluate(
    async ([job, pod]) => {
      const { csrf } = (await (await fetch('/ui/api/session')).json()) as { csrf: string };
      const api = '/ui/api/k8s';
      const watch = await fetch(`${api}/api/v1/namespaces/default/pods?watch=true&fieldSelector=metadata.name=${pod}`);
      const decided = (async () => {
        const reader = watch.body?.pipeThrough(new TextDecoderStream()).getReader();
        for (let text = ''; ;) {
          const got = await reader?.read();
          if (!got || got.done) throw new Error('the watch ended');
          text += got.value;
          if (text.includes('"nodeName"')) {
            void reader?.cancel();
            return performance.now();
          }
        }
      })();
      const seen = new Promise<number>((done) => {
        const look = () => {
          if (document.querySelector('.grid-body .badge.ok')) done(performance.now());
        };
        new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
      });
      await fetch(`${api}/apis/kubeflow.org/v1/namespaces/default/pytorchjobs`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Swell-CSRF': csrf },
        body: JSON.stringify(job),
      });
      const [made, shown] = await Promise.all([decided, seen]);
      return Math.max(0, shown - made);
    },
    [JOB(name), `${name}-worker-0`] as const,
  );
}

// The best of the rounds: others work on the same cores.
async function scrolled(): Promise<Scroll> {
  const fake = await startFake(path.resolve('dist'), JOBS);
  const measured: Scroll[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const own = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const tab = await own.newPage();
    tab.setDefaultTimeout(60_000);
    await tab.goto(`${fake.url}/#code=${CODE}`);
    await tab.waitForSelector('h1:has-text("Overview")');
    measured.push(await scrollWorkloads(tab));
    await own.close();
  }
  await fake.close();
  return measured.reduce((best, one) => (one.rate > best.rate ? one : best));
}

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
const page = await context.newPage();
page.setDefaultTimeout(60_000);
await page.goto(url);
await page.waitForSelector('h1:has-text("Overview")');
const cookies = await context.cookies();
const paints: number[] = [];
const numbers: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const fresh = await browser.newContext({ viewport: { width: 1440, height: 900 } }); // nothing is cached
  await fresh.addCookies(cookies);
  const tab = await fresh.newPage();
  await tab.addInitScript(() => {
    new MutationObserver((_, watch) => {
      if (!document.querySelector('.tile')) return;
      watch.disconnect();
      performance.mark('numbers');
    }).observe(document, { subtree: true, childList: true });
  });
  await tab.goto(new URL('/', url).href);
  await tab.waitForSelector('.tile');
  paints.push(await tab.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1));
  numbers.push(await tab.evaluate(() => performance.getEntriesByName('numbers')[0]?.startTime ?? -1));
  await fresh.close();
}
const decisions: number[] = [];
for (let round = 0; round < ROUNDS; round += 1)
  decisions.push(await decisionSeen(page, `seen-${process.pid}-${round}`));
const scroll = await scrolled();
const tabs: Page[] = [page];
while (tabs.length < TABS.length) tabs.push(await context.newPage());
// In headless Chromium all tabs are visible, so none sleeps as a hidden tab would.
for (const [at, tab] of tabs.entries()) await tab.goto(new URL(TABS[at] ?? '/', url).href);
console.log(
  JSON.stringify({
    paintMs: median(paints),
    numbersMs: median(numbers),
    decisionMs: median(decisions),
    decisionMostMs: Math.max(...decisions),
    tabs: tabs.length,
    scrollFrames: scroll.rate,
    scrollCostMs: scroll.costMs,
  }),
);
process.stdin.resume();
await new Promise((done) => process.stdin.on('end', done));
await browser.close();
process.exit(0);
