// Crons: found by list, search and events; suspended and resumed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, noTroubles, stage, texts } from './fixture.ts';

const one = stage();

test('a cron is found by its list, says why it starts none, and is resumed', async () => {
  const page = await one.page();
  await page.locator('nav.rail').getByRole('link', { name: 'Crons', exact: true }).click();
  await page.waitForSelector('.grid-foot:has-text("3 crons")');
  const rows = await texts(page, '.grid-body .grid-row');
  assert.match(rows[0] ?? '', /^nightly Active 0 22 \* \* \* in 1 h 3\d min/);
  assert.match(rows[1] ?? '', /report-29932230 Running/);
  await page.locator('.name-link', { hasText: 'yearly' }).click();
  await page.waitForSelector('.notice:has-text("yearly is suspended, and starts no jobs.")');
  await page.getByRole('tab', { name: 'Why' }).click();
  await page.waitForSelector('.sentence:has-text("yearly is suspended, and starts no jobs")');
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.waitForSelector('.toast:has-text("yearly is resumed")');
  await page.waitForSelector('h1 + .badge:has-text("Active")');
  const patch = one.fake.requests.find((request) => request.startsWith('PATCH'));
  assert.equal(patch, 'PATCH /ui/api/k8s/apis/batch/v1/namespaces/vision/cronjobs/yearly');
  await page.context().close();
  noTroubles(one);
});

test('search and events lead to the page of a cron', async () => {
  const { events, now } = one.fake.world;
  events.unshift({
    time: new Date(now).toISOString(),
    type: 'Normal',
    reason: 'SuccessfulCreate',
    object: { kind: 'CronJob', namespace: 'vision', name: 'report' },
    message: 'Created job report-29932230',
    count: 1,
  });
  const page = await one.page();
  await go(page, '/events', 'Events');
  await page.getByRole('link', { name: 'vision/report' }).first().click();
  await page.waitForSelector('h1:has-text("report")');
  await page.waitForSelector('.grid-body .grid-row:has-text("report-29932230")');
  await page.keyboard.press('/');
  await page.keyboard.type('nightly');
  await page.waitForSelector('.results a:has-text("vision/nightly"):has-text("Cron")');
  await page.keyboard.press('Enter');
  await page.waitForSelector('h1:has-text("nightly")');
  await page.context().close();
  noTroubles(one);
});

test('a cron that is not there says so', async () => {
  const page = await one.page();
  await go(page, '/cron?namespace=vision&name=gone&kind=Cron', 'gone');
  await page.waitForSelector('text=There is no Cron vision/gone');
  await page.context().close();
});
