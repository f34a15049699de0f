// What the pages say in place of what the server says, and what they send of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressTexts, clock, dateTime, moment, reasonText, withClocks } from '../../src/lib/format.ts';
import { asNew } from '../../src/lib/job_form.ts';
import { amount } from '../../src/lib/project_form.ts';
import { screenKey } from '../../src/lib/router.ts';
import { readNumber } from '../../src/parts/dialog.tsx';

test('a moment has its day among moments of several days', () => {
  const time = '2026-11-30T16:00:05Z';
  assert.equal(moment(time, 3_600_000), clock(time));
  assert.equal(moment(time, 3 * 86_400_000), dateTime(time).slice(5, 16));
});

test('another object begins its screen anew, and another tab of it does not', () => {
  const key = (search: string) => screenKey({ path: '/job', params: new URLSearchParams(search) });
  assert.equal(key('namespace=a&name=b&kind=Job'), key('namespace=a&name=b&kind=Job&tab=logs'));
  const keys = ['namespace=a&name=b&kind=Job', 'namespace=a&name=b&kind=PyTorchJob', 'namespace=b&name=a&kind=Job'];
  assert.equal(new Set(keys.map(key)).size, 3);
});

test('a number is read as the pages write it, and a comma as a decimal one elsewhere', () => {
  for (const [text, value] of [
    ['1,000', 1000],
    ['12,000.5', 12000.5],
    ['1,5', 1.5],
    ['0,125', 0.125],
    ['0.5', 0.5],
  ] as const) {
    assert.equal(readNumber(text), value, text);
    assert.equal(amount(text), value, text);
  }
  assert.equal(readNumber('1,2,3'), undefined);
});

test('a copy of a Job of Kubernetes chooses pods of its own', () => {
  const template = (labels: Record<string, string>) => ({ metadata: { labels }, spec: { containers: [] } });
  const own = { 'controller-uid': 'u', 'batch.kubernetes.io/controller-uid': 'u', 'job-name': 'a' };
  const job = (spec: Record<string, unknown>) => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'a', labels: { ...own, team: 'x' } },
    spec: { selector: { matchLabels: { 'controller-uid': 'u' } }, template: template({ ...own, app: 'b' }), ...spec },
  });
  assert.deepEqual(asNew(job({ parallelism: 2 }), 'b'), {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'b', labels: { team: 'x' } },
    spec: { parallelism: 2, template: template({ app: 'b' }) },
  });
  assert.deepEqual(asNew(job({ manualSelector: true }), 'b').spec, job({ manualSelector: true }).spec);
});

test('times in what the server says are those of the reader', () => {
  const local = (time: string) => {
    const at = new Date(time);
    const two = (value: number) => String(value).padStart(2, '0');
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  };
  const begin = '2026-11-30T16:00:00Z';
  assert.equal(withClocks(`starts at ${begin} at the earliest`), `starts at ${local(begin)} at the earliest`);
  assert.equal(withClocks('mnist-2026-11-30 waits'), 'mnist-2026-11-30 waits');
  const row = { name: 'a', kind: 'Job', reason: `starts at ${begin} at the earliest` };
  assert.equal(reasonText(row), `starts at ${local(begin)} at the earliest`);
});

test('the addresses of a workload name their ports', () => {
  const ports = [
    { name: 'http', port: 80, nodePort: 30080 },
    { name: null, port: 9000, nodePort: null },
  ];
  assert.deepEqual(addressTexts([{ service: 'a', ip: '10.96.0.9', ports }]), [
    '10.96.0.9:80 (http, port 30080 of each node)',
    '10.96.0.9:9000',
  ]);
  assert.deepEqual(addressTexts([{ service: 'a', ip: 'fd00::1', ports: [{ port: 80 }] }]), ['[fd00::1]:80']);
  assert.deepEqual(addressTexts([]), []);
});
