// How fast 10,000 workloads scroll: frames a second, and what a frame costs the page's thread. The cost does not depend
// on what else the machine does.
import type { Page } from 'playwright-core';
import { go } from './fixture.ts';

export const JOBS = 10_000;
const SPAN_MS = 3000;

export interface Scroll {
  rate: number;
  slowestMs: number;
  costMs: number;
}

// For a page that is logged in to a fake server with so many jobs.
export async function scrollWorkloads(page: Page): Promise<Scroll> {
  await go(page, '/workloads', 'Workloads');
  await page.waitForSelector('.grid-foot:has-text("10,000 workloads")', { timeout: 60_000 });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  const busy = async () => {
    const { metrics } = await devtools.send('Performance.getMetrics');
    return metrics.find((one) => one.name === 'TaskDuration')?.value ?? NaN;
  };
  const before = await busy();
  const seen = await page.evaluate(
    (span) =>
      new Promise<{ frames: number; ms: number; slowest: number }>((done) => {
        const box = document.querySelector('.grid-scroll') as HTMLElement;
        const begin = performance.now();
        let last = begin;
        let frames = 0;
        let slowest = 0;
        const step = (at: number) => {
          frames += 1;
          slowest = Math.max(slowest, at - last);
          last = at;
          box.scrollTop += 60;
          if (at - begin < span) requestAnimationFrame(step);
          else done({ frames, ms: at - begin, slowest });
        };
        requestAnimationFrame(step);
      }),
    SPAN_MS,
  );
  const cost = (await busy()) - before;
  await devtools.detach();
  return { rate: (1000 * seen.frames) / seen.ms, slowestMs: seen.slowest, costMs: (1000 * cost) / seen.frames };
}

// What the browser keeps as pictures of their own while the table of an open page scrolls. Each costs time in each
// frame, however few of the rows are new.
export async function layersWhileScrolling(page: Page): Promise<number> {
  const devtools = await page.context().newCDPSession(page);
  let drawn = 0;
  devtools.on('LayerTree.layerTreeDidChange', ({ layers }) => {
    if (layers) drawn = layers.filter((layer) => layer.drawsContent).length;
  });
  await devtools.send('DOM.enable');
  await devtools.send('LayerTree.enable');
  for (let step = 0; step < 20; step += 1) {
    await page.evaluate(
      () =>
        new Promise((done) => {
          document.querySelector('.grid-scroll')?.scrollBy(0, 60);
          requestAnimationFrame(() => requestAnimationFrame(done));
        }),
    );
  }
  await devtools.detach();
  return drawn;
}
