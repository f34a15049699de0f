// Menus by keyboard, tabs that do not exist, and what follows a deletion.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, noTroubles, stage } from './fixture.ts';

const one = stage();

test('a filter is chosen by keyboard, and Tab leaves the menu', async () => {
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.waitForSelector('.grid-body .grid-row');
  await page.getByRole('button', { name: 'Add a filter' }).press('Enter');
  await page.waitForSelector('.menu button:has-text("Status")');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.menu input[type=checkbox]');
  await page.waitForFunction(() => document.activeElement?.textContent?.startsWith('‹ Status'));
  await page.keyboard.press('Tab');
  await page.keyboard.press('Space');
  await page.waitForSelector('.chip:has-text("Status:")');
  assert.equal(await page.locator('.menu').count(), 1);
  const choices = await page.locator('.menu input').count();
  for (let at = 0; at < choices; at += 1) await page.keyboard.press('Tab');
  await page.waitForSelector('.menu', { state: 'detached' });
  await page.context().close();
  noTroubles(one);
});

test('an address with a tab that the page does not have shows its first', async () => {
  const page = await one.page();
  await go(page, '/project?name=vision&tab=nothing', 'vision');
  await page.waitForSelector('[role=tab][aria-selected=true]:has-text("Quotas")');
  await page.waitForSelector('[role=tabpanel] table');
  assert.equal(await page.locator('#tab-panel').getAttribute('aria-labelledby'), 'tab-quotas');
  await page.context().close();
  noTroubles(one);
});

test('after a workload is deleted on its page, the list is shown', async () => {
  const row = one.fake.world.jobs.find((job) => job.status === 'Running');
  assert.ok(row);
  const page = await one.page();
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}`, row.name);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await page.waitForSelector('h1:has-text("Workloads")');
  await page.context().close();
  noTroubles(one);
});
