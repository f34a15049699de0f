// What the pages say in place of what the server says, and what they send of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNew } from '../../src/lib/job_form.ts';

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
