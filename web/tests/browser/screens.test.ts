import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, noTroubles, seriousFindings, shot, stage, texts } from './fixture.ts';

const one = stage();
const JOB = '/job?namespace=vision&name=finetune-3&kind=PyTorchJob';
const SCREENS: [string, string, string][] = [
  ['/', 'Overview', '.tile'],
  ['/workloads', 'Workloads', '.grid-body .grid-row'],
  ['/crons', 'Crons', '.grid-body .grid-row'],
  ['/cron?namespace=vision&name=report&kind=CronJob', 'report', '.grid-body .grid-row'],
  ['/cron?namespace=vision&name=nightly&kind=Cron&tab=why', 'nightly', '.sentence'],
  ['/projects', 'Projects', '.grid-body .grid-row'],
  ['/project?name=vision', 'vision', '.facts'],
  ['/project?name=robotics&tab=borrowing', 'robotics', '.sentence'],
  ['/project?name=vision&tab=members', 'vision', '.list-table'],
  ['/project?name=vision&tab=history', 'vision', '.chart canvas'],
  ['/nodepools', 'Node Pools', '.grid-body .grid-row'],
  ['/nodepool?name=single-node-pool', 'single-node-pool', '.chart canvas'],
  ['/nodes', 'Nodes', '.grid-body .grid-row'],
  ['/node?name=node-1', 'node-1', '.list-table'],
  ['/node?name=node-2', 'node-2', '.gpu.bad'],
  ['/node?name=node-3', 'node-3', '[aria-label=Failures]'],
  [JOB, 'finetune-3', '.lane'],
  [`${JOB}&tab=throughput`, 'finetune-3', '.chart canvas'],
  [`${JOB}&tab=why`, 'finetune-3', '.sentence'],
  [`${JOB}&tab=workers`, 'finetune-3', '.grid-body .grid-row'],
  [`${JOB}&tab=logs`, 'finetune-3', '.log-line'],
  [`${JOB}&tab=events`, 'finetune-3', '.grid'],
  [`${JOB}&tab=yaml`, 'finetune-3', 'pre.text:has-text("kind:")'],
  ['/analytics', 'Analytics', '#project-usage canvas'],
  ['/whatif', 'What-if', 'form'],
  ['/events', 'Events', '.grid-body .grid-row'],
  ['/events?tab=audit', 'Events', '.grid-body .grid-row'],
  ['/users', 'Users', '.grid-body .grid-row'],
  ['/settings', 'Settings', '.facts'],
];

for (const dark of [false, true]) {
  test(`every screen renders in ${dark ? 'dark' : 'light'}, and axe finds nothing serious`, async () => {
    const page = await one.page({ dark });
    const wrong: string[] = [];
    for (const [address, heading, part] of SCREENS) {
      await go(page, address, heading);
      await page.waitForSelector(part);
      wrong.push(...(await seriousFindings(page)).map((text) => `${address}: ${text}`));
      await shot(page, `${dark ? 'dark' : 'light'}${address.replaceAll(/[^a-z0-9]+/gi, '-')}`);
    }
    await page.context().close();
    assert.deepEqual(wrong, []);
    noTroubles(one);
  });
}

test('nothing is wider than a phone', async () => {
  const page = await one.page({ width: 390 });
  for (const [address, heading, part] of SCREENS) {
    await go(page, address, heading);
    await page.waitForSelector(part);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${address} is ${width} px wide`);
    await shot(page, `phone${address.replaceAll(/[^a-z0-9]+/gi, '-')}`);
  }
  await go(page, `${JOB}&tab=yaml`, 'finetune-3');
  const [from, to] = await page.locator('.tabs [aria-selected="true"]').evaluate((tab) => {
    const box = tab.getBoundingClientRect();
    return [box.left, box.right];
  });
  assert.ok((from ?? -1) >= 0 && (to ?? 999) <= 390, 'the tab that is chosen is in sight');
  await page.getByLabel('Open the menu').click();
  await page.getByRole('link', { name: 'Node Pools' }).click();
  await page.waitForSelector('h1:has-text("Node Pools")');
  await page.context().close();
});

test('a long name of a project makes no page wider, and where it is cut one sees that', async () => {
  const [project] = one.fake.world.projects.filter((row) => row.namespace);
  const name = 'robotics-and-embodied-intelligence-long-name';
  one.fake.world.projects.push({ ...project!, name, parent: null });
  const page = await one.page({ width: 390 });
  for (const address of ['/', '/projects', `/project?name=${name}`, '/analytics']) {
    await page.goto(new URL(address, page.url()).href);
    await page.waitForSelector(`main :text("${name}")`);
    await page.waitForLoadState('networkidle');
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${address} is ${width} px wide`);
  }
  await go(page, '/projects', 'Projects');
  const cut = await page.waitForSelector(`.grid-body .cut .cut:has-text("${name}")`);
  const [inside, wide] = await cut.evaluate((element) => [element.clientWidth, element.scrollWidth]);
  assert.ok((wide ?? 0) > (inside ?? 0), 'the name itself is cut, which shows an ellipsis');
  one.fake.world.projects.pop();
  await page.context().close();
});

test('workloads of one long name are told apart by its end', async () => {
  const [job] = one.fake.world.jobs;
  const stem = 'finetune-llama-3-70b-instruct-lora-rank-64-alpha-128';
  const made = [7, 12].map((index) => ({
    ...job!,
    uid: `long-${index}`,
    name: `${stem}-${index}`,
    created: job!.created,
  }));
  one.fake.world.jobs.push(...made);
  const [event] = one.fake.world.events;
  one.fake.world.events.unshift({ ...event!, object: { kind: 'PyTorchJob', namespace: 'vision', name: `${stem}-12` } });
  const page = await one.page({ width: 390 });
  await go(page, '/workloads?q=finetune-llama', 'Workloads');
  const ends = await page.waitForSelector('.grid-body .name-link').then(() =>
    page.locator('.grid-body .name-link').evaluateAll((links) =>
      links.map((link) => {
        const range = document.createRange();
        const text = link.querySelector('.halves')?.lastChild as Text;
        range.selectNodeContents(text);
        const cell = link.closest('[role=cell]') as HTMLElement;
        return [text.data, range.getBoundingClientRect().right <= cell.getBoundingClientRect().right];
      }),
    ),
  );
  assert.deepEqual(ends.sort(), [
    ['-128-12', true],
    ['-128-7', true],
  ]);
  assert.equal(await page.getByRole('link', { name: `${stem}-7`, exact: true }).count(), 1);
  const wide = await one.page({ width: 1280 });
  const [node] = one.fake.world.nodes;
  const [gpu] = node!.gpuDevices;
  const before = { ...gpu! };
  Object.assign(gpu!, { job: `${stem}-12`, pod: `${stem}-12-worker-0`, namespace: 'vision' });
  await go(wide, `/node?name=${node!.name}`, node!.name);
  await wide.waitForSelector(`[aria-label=GPUs] :text("${stem}-12-worker-0")`);
  const [inside, all] = await wide
    .locator('.scroll-x[aria-label=GPUs]')
    .evaluate((box) => [box.clientWidth, box.scrollWidth]);
  assert.ok((all ?? 0) <= (inside ?? 0), `the table of GPUs is ${all} px wide in ${inside}`);
  Object.assign(gpu!, before);
  await wide.context().close();
  for (const [address, heading] of [
    ['/', 'Overview'],
    [`/job?namespace=${job!.namespace}&name=${stem}-7&kind=${job!.kind}`, stem],
  ] as const) {
    await go(page, address, heading);
    await page.waitForLoadState('networkidle');
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${address} is ${width} px wide`);
  }
  one.fake.world.jobs.splice(-2);
  one.fake.world.events.shift();
  await page.context().close();
});

test('a name is cut only where there is no room for it', async () => {
  const page = await one.page();
  await go(page, '/events', 'Events');
  await page.waitForSelector('.grid-body .halves');
  const early = await page.locator('.grid-body .halves').evaluateAll((names) =>
    names
      .filter((name) => {
        const head = name.querySelector('.cut') as HTMLElement;
        const cell = name.closest('[role=cell]') as HTMLElement;
        const room = cell.clientWidth - parseFloat(getComputedStyle(cell).paddingRight);
        const used = name.getBoundingClientRect().right - cell.getBoundingClientRect().left;
        return head.scrollWidth > head.clientWidth && used < room - 2;
      })
      .map((name) => name.textContent),
  );
  assert.deepEqual(early, []);
  await page.context().close();
});

test('no list is wider than a screen of 1024, and no other table than one of 1280', async () => {
  const page = await one.page({ width: 1280 });
  const lists = await one.page({ width: 1024 });
  let tables = 0;
  for (const [address, heading, part] of SCREENS) {
    await go(page, address, heading);
    await page.waitForSelector(part);
    for (const box of await page.locator('.grid-scroll, .scroll-x').all()) {
      if (!(await box.isVisible())) continue;
      const [inside, wide] = await box.evaluate((element) => [element.clientWidth, element.scrollWidth]);
      assert.ok((wide ?? 0) <= (inside ?? 0), `${address}: a table of ${wide} px in ${inside}`);
      tables += 1;
    }
    const over = await page.evaluate(() =>
      [...document.querySelectorAll('.grid-body [role=cell]')]
        .filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
        .map((cell) => cell.textContent),
    );
    assert.deepEqual(over, [], `${address}: cells that run into the next`);
    await go(lists, address, heading);
    await lists.waitForSelector(part);
    for (const box of await lists.locator('.grid-scroll').all()) {
      const [inside, wide] = await box.evaluate((element) => [element.clientWidth, element.scrollWidth]);
      assert.ok((wide ?? 0) <= (inside ?? 0), `${address}: a list of ${wide} px in ${inside}`);
    }
    await shot(page, `wide${address.replaceAll(/[^a-z0-9]+/gi, '-')}`);
  }
  assert.ok(tables > 10);
  await page.context().close();
  await lists.context().close();
});

test('the name of a row stays in sight while its table is scrolled sideways', async () => {
  const page = await one.page({ width: 390 });
  await go(page, '/workloads', 'Workloads');
  await page.waitForSelector('.grid-body .grid-row');
  const left = () =>
    page.evaluate(() => {
      const box = document.querySelector('.grid-scroll') as HTMLElement;
      const name = document.querySelector('.grid-body .stick') as HTMLElement;
      return name.getBoundingClientRect().left - box.getBoundingClientRect().left;
    });
  assert.ok((await left()) > 20);
  await page.evaluate(() => document.querySelector('.grid-scroll')?.scrollBy(300, 0));
  await page.waitForSelector('.grid-scroll.aside');
  assert.equal(await left(), 0);
  await page.context().close();
});

test('the table of nodes fits a phone, and says what it leaves out', async () => {
  const page = await one.page({ width: 390 });
  await go(page, '/nodes', 'Nodes');
  await page.waitForSelector('.grid-body .grid-row');
  const hidden = await page.evaluate(() => {
    const box = document.querySelector('.grid-scroll') as HTMLElement;
    return box.scrollWidth - box.clientWidth;
  });
  assert.ok(hidden <= 0, `${hidden} px of the table are out of sight`);
  const heads = await page.locator('.grid-head [role="columnheader"]').allInnerTexts();
  assert.deepEqual(
    heads.map((text) => text.trim()),
    ['Node', 'Status', 'Held'],
  );
  assert.match(await page.locator('.grid').innerText(), /columns do not fit; the menu of columns has them/);
  await page.context().close();
});

test('a cluster without GPUs has no columns of them, and claims no ready ones', async () => {
  const { world } = one.fake;
  const before = world.nodes;
  world.nodes = before.map((node) => ({ ...node, gpus: { total: 0, held: 0, free: 0 }, gpuDevices: [] }));
  const page = await one.page();
  const total = await texts(page, '.tile:has-text("GPUs held"), .tile:has-text("Free GPUs")');
  assert.deepEqual(total, ['GPUs held 0 / 0 no node has any', 'Free GPUs 0']);
  await go(page, '/nodes', 'Nodes');
  await page.waitForSelector('.grid-head:has-text("CPU held"):has-text("Pods")');
  const heads = await texts(page, '.grid-head [role=columnheader]');
  assert.ok(!heads.some((head) => /GPUs|Held|Free|Idle/.test(head)), heads.join());
  world.nodes = [...before.slice(0, 1), ...world.nodes.slice(1)];
  await go(page, '/nodes', 'Nodes');
  await page.waitForSelector('.grid-head:has-text("GPUs")');
  const gpus = (await texts(page, '.grid-head [role=columnheader]')).findIndex((head) => head.startsWith('GPUs'));
  const row = page.locator('.grid-body .grid-row', {
    has: page.getByText(world.nodes[1]?.name ?? '', { exact: true }),
  });
  assert.equal((await row.locator('[role=cell]').nth(gpus).innerText()).trim(), '–');
  world.nodes = before;
  await page.context().close();
});

test('rows of tiles are full', async () => {
  for (const [width, rows] of [
    [1440, [6]],
    [1024, [3, 3]],
    [390, [2, 2, 2]],
  ] as const) {
    const page = await one.page({ width });
    await page.waitForSelector('.tile');
    const tops = await page
      .locator('.tile')
      .evaluateAll((tiles) => tiles.map((tile) => tile.getBoundingClientRect().top));
    const counts = [...new Set(tops)].map((top) => tops.filter((other) => other === top).length);
    assert.deepEqual(counts, rows);
    await page.context().close();
  }
});

test('printed pages have light colours and no controls', async () => {
  const page = await one.page({ dark: true });
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await page.waitForSelector('nav.rail', { state: 'hidden' });
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(245, 246, 248)');
  assert.ok(await page.locator('.tile').first().isVisible());
  await page.context().close();
});

test('menus and the choices of a form are whole on a phone', async () => {
  const page = await one.page({ width: 390 });
  await go(page, '/workloads', 'Workloads');
  for (const name of ['Add a filter', 'Choose columns', 'Views']) {
    await page.getByRole('button', { name }).click();
    const [left, right] = await page.locator('.menu').evaluate((menu) => {
      const box = menu.getBoundingClientRect();
      return [box.left, box.right];
    });
    assert.ok((left ?? -1) >= 0 && (right ?? 999) <= 390, `${name}: from ${left} to ${right}`);
    await page.keyboard.press('Escape');
  }
  await page.getByRole('button', { name: 'New workload' }).click();
  await page.waitForSelector('dialog .check');
  const cut = await page
    .locator('dialog .check')
    .evaluateAll((all) => all.filter((one) => one.scrollHeight > one.clientHeight + 1).map((one) => one.textContent));
  assert.deepEqual(cut, []);
  assert.ok((await page.locator('dialog .check').count()) > 1);
  await page.context().close();
});

test('what a project borrows is said to be of others only where they leave some idle', async () => {
  const page = await one.page();
  const others = one.fake.world.projects.filter((row) => row.name !== 'robotics');
  const before = others.map((row) => row.resources.gpu.held);
  await go(page, '/project?name=robotics&tab=borrowing', 'robotics');
  await page.waitForSelector('.card:has-text("Borrowed"):has-text("leave a part of their quota idle")');
  for (const row of others) row.resources.gpu.held = row.resources.gpu.quota ?? 0;
  one.fake.changed();
  await page.waitForSelector('.card:has-text("Borrowed"):has-text("belongs to nobody")');
  assert.equal(await page.getByText('can take it back').count(), 0);
  others.forEach((row, at) => {
    row.resources.gpu.held = before[at] ?? 0;
  });
  one.fake.changed();
  await page.context().close();
});

test('a workload that runs is told what would let it grow, one that waits what would start it', async () => {
  const page = await one.page();
  const [runs, waits] = ['Running', 'Pending'].map((status) =>
    one.fake.world.jobs.find((row) => row.status === status),
  );
  assert.ok(runs && waits);
  runs.members.requested += 1;
  for (const [row, title] of [
    [runs, 'What would let it grow'],
    [waits, 'What would start it'],
  ] as const) {
    await go(page, `/job?namespace=${row.namespace}&name=${row.name}&kind=${row.kind}&tab=why`, row.name);
    await page.waitForSelector(`.card:has-text("${title}"):has-text("Any one of these would do")`);
  }
  runs.members.requested -= 1;
  // What holds the nodes is a table of the page, not one of a terminal.
  await page.getByRole('region', { name: 'Nodes' }).getByRole('link', { name: 'node-1' }).click();
  await page.waitForSelector('h1:has-text("node-1")');
  await page.context().close();
});

test('the rail has the words of Run:ai', async () => {
  const page = await one.page();
  assert.deepEqual(await texts(page, 'nav.rail li a'), [
    'Overview',
    'Workloads',
    'Crons',
    'Projects',
    'Node Pools',
    'Nodes',
    'Analytics',
    'What-if',
    'Events',
    'Users',
    'Settings',
  ]);
  assert.deepEqual(await texts(page, 'nav.rail h2'), ['Workload manager', 'Platform Admin']);
  await page.context().close();
});

test('the settings tell the versions, and who leads', async () => {
  const page = await one.page();
  await go(page, '/settings', 'Settings');
  await page.waitForSelector('.facts:has-text("Swell"):has-text("0.1.0"):has-text("v1.37.2+swell")');
  await page.getByText('swell-controller', { exact: true }).waitFor();
  await page.route('**/leases', (route) => route.fulfill({ json: { items: [] } }));
  await page.reload();
  await page.waitForSelector('text=No leader is elected: one process is the whole control plane of this cluster.');
  await page.route('**/leases', (route) => route.fulfill({ status: 403, json: { message: 'leases are not yours' } }));
  await page.reload();
  await page.waitForSelector('text=The leaders could not be read: leases are not yours');
  await page.context().close();
});

test('no request leaves for another host', async () => {
  const page = await one.page();
  const hosts = new Set<string>();
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  await go(page, '/analytics', 'Analytics');
  await page.waitForSelector('#project-usage canvas');
  assert.deepEqual([...hosts], [new URL(one.fake.url).host]);
  await page.context().close();
});

test('the overview names the workloads that fail or hang', async () => {
  const page = await one.page();
  const bad = one.fake.world.jobs.filter((row) => row.status === 'Hung' || /BackOff$/.test(row.statusText ?? ''));
  assert.ok(bad[0]);
  const card = page.locator('.card', { has: page.getByText(/^\d+ workloads? (?:fails or hangs|fail or hang)$/) });
  await card.getByRole('link', { name: `${bad[0].namespace}/${bad[0].name}`, exact: true }).click();
  await page.waitForSelector(`h1:has-text("${bad[0].name}")`);
  await page.context().close();
});

test('a number leads to what it is made of', async () => {
  const page = await one.page();
  await page.getByRole('link', { name: /Pending workloads/ }).click();
  await page.waitForSelector('h1:has-text("Workloads")');
  // A workload that was preempted waits, too.
  assert.equal(new URL(page.url()).searchParams.get('status'), 'Pending,Preempted,Restarting');
  const pending = one.fake.world.jobs.filter((row) => /Pending|Preempted/.test(row.status)).length;
  await page.waitForSelector(`.grid-foot:has-text("${pending} of 60 workloads")`);
  await page.context().close();
});
