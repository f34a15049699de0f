// A session that ends while somebody fills in a form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { TOKEN } from '../fake/server.ts';
import { go, noTroubles, stage } from './fixture.ts';

const one = stage();

// A form that is begun when the session ends.
async function interrupted(): Promise<Page> {
  const page = await one.page();
  await go(page, '/workloads', 'Workloads');
  await page.getByRole('button', { name: 'New workload' }).click();
  await page.getByLabel('Workload name').fill('begun');
  await page.getByLabel('Project', { exact: true }).selectOption('vision');
  await page.getByLabel('Image').fill('python:3.11');
  await page.context().clearCookies();
  await page.getByRole('button', { name: 'Show the plan' }).click();
  await page.waitForSelector('text=Your session has ended');
  return page;
}

async function logIn(page: Page): Promise<void> {
  await page.waitForFunction(() => document.activeElement?.id === 'token');
  await page.keyboard.type(TOKEN);
  await page.keyboard.press('Enter');
}

test('a form that was begun when the session ended is there again after the login', async () => {
  const page = await interrupted();
  assert.equal(await page.getByRole('dialog').count(), 0, 'the login is in front');
  await logIn(page);
  await page.getByRole('dialog').waitFor();
  assert.equal(await page.getByLabel('Workload name').inputValue(), 'begun');
  await page.getByRole('button', { name: 'Show the plan' }).click();
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.waitForSelector('h1:has-text("begun")');
  await page.context().close();
  noTroubles(one);
});

test('another user who logs in then sees nothing of the form', async () => {
  const page = await interrupted();
  await page.route('**/ui/api/login', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), user: 'eve' } });
  });
  await logIn(page);
  await page.waitForSelector('h1:has-text("Workloads")');
  assert.equal(await page.locator('dialog').count(), 0);
  await page.context().close();
});
