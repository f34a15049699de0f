// Menus by keyboard, tabs that do not exist, servers, and what follows a deletion.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkloadRow } from '../../src/lib/types.ts';
import { go, noTroubles, seriousFindings, shot, stage, texts } from './fixture.ts';

const one = stage();

// A server of arena serve beside the workloads of the cluster.
function addServer(): WorkloadRow {
  const { jobs } = one.fake.world;
  const running = jobs.find((row) => row.status === 'Running');
  assert.ok(running);
  const row: WorkloadRow = {
    ...structuredClone(running),
    uid: 'uid-bert',
    name: 'bert-v1-custom-serving',
    kind: 'Deployment',
    apiVersion: 'apps/v1',
    plural: 'deployments',
    workload: 'inference',
  };
  jobs.unshift(row);
  return row;
}

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

test('a server is found among the workloads, and has the tabs and buttons of a server', async () => {
  const row = addServer();
  const page = await one.page();
  await go(page, '/workloads?kind=Deployment', 'Workloads');
  await page.getByLabel('Choose all rows').click();
  await page.getByRole('button', { name: 'Delete 1' }).waitFor();
  assert.equal(await page.getByRole('button', { name: /^Suspend/ }).count(), 0);
  await page.locator('.name-link').click();
  await page.waitForSelector(`h1:has-text("${row.name}")`);
  assert.deepEqual(await texts(page, '[role=tab]'), ['Timeline', 'Why', 'Workers', 'Logs', 'Events', 'YAML']);
  await page.waitForSelector('.lanes .lane');
  assert.doesNotMatch((await texts(page, '.facts dt')).join(), /Waited|Throughput|Lost work/);
  await page.getByRole('tab', { name: 'Why' }).click();
  await page.waitForSelector('section[aria-label="What to do next"]:has-text("Nothing: the workload runs.")');
  await page.getByRole('tab', { name: 'Workers' }).click();
  await page.waitForSelector('[aria-label=Workers] .grid-row');
  assert.deepEqual(
    (await texts(page, '.head .right button')).filter((text) => /Suspend|Copy|TensorBoard/.test(text)),
    [],
  );
  assert.doesNotMatch((await texts(page, '.facts dt')).join(), /Throughput|Lost work/);
  assert.deepEqual(await seriousFindings(page), []);
  await shot(page, 'server');
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
  const row = one.fake.world.jobs.find((job) => job.status === 'Running' && job.kind !== 'Deployment');
  assert.ok(row);
  const page = await one.page();
  await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}`, row.name);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.locator('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await page.waitForSelector('h1:has-text("Workloads")');
  await page.context().close();
  noTroubles(one);
});
