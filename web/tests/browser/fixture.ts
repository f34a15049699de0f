// A browser, and a page that is logged in to the fake server.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before } from 'node:test';
import { chromium, type Browser, type Page } from 'playwright-core';
import { CODE, startFake, type Fake } from '../fake/server.ts';

export const SHOTS = process.env.SWELL_SHOTS ?? '';
const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface Stage {
  fake: Fake;
  page: (options?: { dark?: boolean; width?: number; login?: boolean; zone?: string }) => Promise<Page>;
  troubles: string[];
}

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: process.env.SWELL_CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
}

export function stage(jobs = 60): Stage {
  const made = { troubles: [] as string[] } as Stage;
  let browser: Browser;
  before(async () => {
    browser = await launch();
    made.fake = await startFake(path.resolve('dist'), jobs);
  });
  after(async () => {
    await browser?.close();
    await made.fake?.close();
  });
  made.page = async ({ dark = false, width = 1440, login = true, zone } = {}) => {
    const context = await browser.newContext({
      viewport: { width, height: width < 500 ? 844 : 900 },
      colorScheme: dark ? 'dark' : 'light',
      acceptDownloads: true,
      timezoneId: zone,
    });
    const page = await context.newPage();
    // What takes 50 ms here takes a machine seconds that builds beside it.
    page.setDefaultTimeout(30_000);
    page.on('pageerror', (error) => made.troubles.push(`${page.url()}: ${error.message}`));
    // Interfaces of the machine come and go while other tests run, and tests reset connections; the page asks again.
    page.on('console', (message) => {
      if (
        message.type() === 'error' &&
        !/40[1349]|422|WebSocket|ERR_NETWORK_CHANGED|ERR_CONNECTION_RESET/.test(message.text())
      )
        made.troubles.push(`${page.url()}: ${message.text()}`);
    });
    await page.goto(login ? `${made.fake.url}/#code=${CODE}` : made.fake.url);
    await page.waitForSelector(login ? 'h1:has-text("Overview")' : 'h1:has-text("Log in")');
    return page;
  };
  return made;
}

export async function go(page: Page, address: string, heading: string): Promise<void> {
  await page.goto(new URL(address, page.url()).href);
  await page.waitForSelector(`h1:has-text("${heading}")`);
}

export async function shot(page: Page, name: string): Promise<void> {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: path.join(SHOTS, `${name}.png`), fullPage: true });
}

interface Finding {
  id: string;
  impact: string;
  help: string;
  nodes: { html: string }[];
}

// What axe-core finds that is serious or worse.
export async function seriousFindings(page: Page): Promise<string[]> {
  const axe = createRequire(path.resolve('package.json')).resolve('axe-core/axe.min.js');
  if (!(await page.evaluate(() => 'axe' in window))) {
    // The content security policy forbids scripts of others, so it is evaluated by the debugger.
    const { readFile } = await import('node:fs/promises');
    await page.evaluate(await readFile(axe, 'utf8'));
  }
  const found = (await page.evaluate(async () => {
    const run = (window as unknown as { axe: { run: (options: object) => Promise<{ violations: Finding[] }> } }).axe;
    return (await run.run({ resultTypes: ['violations'] })).violations;
  })) as Finding[];
  return found
    .filter((one) => one.impact === 'serious' || one.impact === 'critical')
    .map(
      (one) =>
        `${one.id}: ${one.help}: ${one.nodes
          .slice(0, 3)
          .map((node) => node.html.slice(0, 160))
          .join(' | ')}`,
    );
}

export async function texts(page: Page, selector: string): Promise<string[]> {
  return (await page.locator(selector).allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ').trim());
}
export function noTroubles(one: Stage): void {
  assert.deepEqual(one.troubles, []);
}
