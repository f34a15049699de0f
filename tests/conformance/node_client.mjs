// Uses a server through the official JavaScript client, @kubernetes/client-node: what `node_client`
// starts, with where the package lies, the kubeconfig and whether pods run there.
import assert from 'node:assert/strict';
import {createRequire} from 'node:module';
import {Writable} from 'node:stream';
import test, {after, before} from 'node:test';
import {pathToFileURL} from 'node:url';

const [packages, kubeconfig, runsPods] = process.argv.slice(2);
const found = createRequire(packages + '/').resolve('@kubernetes/client-node');
const k8s = await import(pathToFileURL(found));

const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);
const namespace = 'node-' + Math.random().toString(36).slice(2, 8);
const deadline = AbortSignal.timeout(240_000);

// What `listen` is told until `enough` says so.
function until(listen, enough) {
  return new Promise((resolve, reject) => {
    const seen = [];
    deadline.addEventListener('abort', () => reject(new Error(JSON.stringify(seen))));
    listen((...event) => {
      seen.push(event);
      if (enough(seen)) resolve(seen);
    });
  });
}

class Text extends Writable {
  text = '';
  _write(chunk, encoding, done) {
    this.text += chunk;
    done();
  }
}

before(() => core.createNamespace({body: {metadata: {name: namespace}}}));
after(() => core.deleteNamespace({name: namespace}));

test('objects come and go', async () => {
  const made = await core.createNamespacedConfigMap(
      {namespace, body: {metadata: {name: 'a'}, data: {k: 'v'}}});
  assert.deepEqual(made.data, {k: 'v'});
  const patched = await core.patchNamespacedConfigMap(
      {namespace, name: 'a', body: [{op: 'add', path: '/data/more', value: 'x'}]},
      k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.JsonPatch));
  assert.deepEqual(patched.data, {k: 'v', more: 'x'});
  await assert.rejects(core.replaceNamespacedConfigMap({namespace, name: 'a', body: made}),
                       (error) => error.code === 409);
  await core.deleteNamespacedConfigMap({namespace, name: 'a'});
  await assert.rejects(core.readNamespacedConfigMap({namespace, name: 'a'}),
                       (error) => error.code === 404);
});

test('any object is applied by the server', async () => {
  const objects = k8s.KubernetesObjectApi.makeApiClient(config);
  const spec = {apiVersion: 'v1', kind: 'Secret', metadata: {name: 's', namespace},
                stringData: {k: 'v'}};
  const made = await objects.patch(spec, undefined, undefined, 'node', true,
                                   k8s.PatchStrategy.ServerSideApply);
  assert.deepEqual(made.data, {k: 'dg=='});
  assert.equal(made.metadata.managedFields[0].manager, 'node');
  const listed = await objects.list('v1', 'Secret', namespace);
  assert.ok(listed.items.some((item) => item.metadata.name === 's'));
});

test('a watch sees each change', async () => {
  const {metadata} = await core.listNamespacedService({namespace});
  const watch = new k8s.Watch(config);
  let request;
  const events = until(async (told) => {
    request = await watch.watch(
        `/api/v1/namespaces/${namespace}/services`, {resourceVersion: metadata.resourceVersion},
        (type, object) => told(type, object.metadata.name), () => {});
  }, (seen) => seen.length === 2);
  await core.createNamespacedService(
      {namespace, body: {metadata: {name: 'web'}, spec: {ports: [{port: 80}]}}});
  await core.deleteNamespacedService({namespace, name: 'web'});
  assert.deepEqual(await events, [['ADDED', 'web'], ['DELETED', 'web']]);
  request.abort();
});

test('an informer keeps a cache', async () => {
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const informer = k8s.makeInformer(
      config, path, () => core.listNamespacedConfigMap({namespace, labelSelector: 'cached=yes'}),
      'cached=yes');
  const events = until((told) => {
    for (const kind of ['add', 'update', 'delete']) {
      informer.on(kind, (object) => told(kind, object.metadata.name));
    }
  }, (seen) => seen.length === 3);
  await informer.start();
  const body = {metadata: {name: 'cached', labels: {cached: 'yes'}}};
  await core.createNamespacedConfigMap({namespace, body});
  await core.replaceNamespacedConfigMap({namespace, name: 'cached', body: {...body, data: {k: 'v'}}});
  await core.deleteNamespacedConfigMap({namespace, name: 'cached'});
  assert.deepEqual(await events, [['add', 'cached'], ['update', 'cached'], ['delete', 'cached']]);
  await informer.stop();
});

test('custom resources', async () => {
  const group = `${namespace}.example.com`;
  const definitions = config.makeApiClient(k8s.ApiextensionsV1Api);
  const name = `boats.${group}`;
  await definitions.createCustomResourceDefinition({body: {
    metadata: {name}, spec: {
      group, scope: 'Namespaced', names: {plural: 'boats', kind: 'Boat'},
      versions: [{name: 'v1', served: true, storage: true, schema: {openAPIV3Schema: {
        type: 'object', properties: {spec: {
          type: 'object', properties: {sails: {type: 'integer'}}}}}}}]}}});
  const watch = new k8s.Watch(config);
  let request;
  await until(async (told) => {
    request = await watch.watch(
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
        {fieldSelector: `metadata.name=${name}`},
        (type, object) => told((object.status?.conditions ?? []).some(
            (condition) => condition.type === 'Established' && condition.status === 'True')),
        () => {});
  }, (seen) => seen.at(-1)[0]);
  request.abort();
  const boats = config.makeApiClient(k8s.CustomObjectsApi);
  const where = {group, version: 'v1', namespace, plural: 'boats'};
  await boats.createNamespacedCustomObject({...where, body: {
    apiVersion: `${group}/v1`, kind: 'Boat', metadata: {name: 'b'}, spec: {sails: 2}}});
  const listed = await boats.listNamespacedCustomObject(where);
  assert.deepEqual(listed.items.map((boat) => boat.spec), [{sails: 2}]);
  await definitions.deleteCustomResourceDefinition({name});
});

if (runsPods === 'yes') {
  test('a pod is listened and talked to', async () => {
    await core.createNamespacedPod({namespace, body: {
      metadata: {name: 'p'}, spec: {containers: [{
        name: 'c', image: 'busybox', command: ['sh', '-c', 'echo hello; sleep 600']}]}}});
    const watch = new k8s.Watch(config);
    let request;
    await until(async (told) => {
      request = await watch.watch(
          `/api/v1/namespaces/${namespace}/pods`, {},
          (type, object) => told(object.status.phase), () => {});
    }, (seen) => seen.at(-1)[0] === 'Running');
    request.abort();
    const said = new Text();
    const command = ['sh', '-c', 'echo out; echo err >&2; exit 3'];
    const status = await new Promise((resolve, reject) => {
      new k8s.Exec(config).exec(namespace, 'p', 'c', command, said, said, null, false, resolve)
          .catch(reject);
    });
    assert.equal(status.details.causes[0].message, '3');
    assert.deepEqual(said.text.trim().split('\n').sort(), ['err', 'out']);
    const [line] = await until((told) => {
      const sink = new Writable({write(chunk, encoding, done) {
        told(String(chunk));
        done();
      }});
      new k8s.Log(config).log(namespace, 'p', 'c', sink, {follow: true});
    }, (seen) => seen.join('').includes('\n'));
    assert.equal(line[0], 'hello\n');
    await core.deleteNamespacedPod({namespace, name: 'p', gracePeriodSeconds: 0});
  });

  test('a container is added to look into a pod', async () => {
    await core.createNamespacedPod({namespace, body: {
      metadata: {name: 'q'},
      spec: {containers: [{name: 'c', image: 'busybox', command: ['sleep', '600']}]}}});
    await core.patchNamespacedPodEphemeralcontainers({name: 'q', namespace, body: {
      spec: {ephemeralContainers: [{
        name: 'debug', image: 'busybox', command: ['sh', '-c', 'hostname; exit 4']}]}}},
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.StrategicMergePatch));
    const watch = new k8s.Watch(config);
    let request;
    const seen = await until(async (told) => {
      request = await watch.watch(
          `/api/v1/namespaces/${namespace}/pods`, {fieldSelector: 'metadata.name=q'},
          (type, object) => told(object.status.ephemeralContainerStatuses?.[0], object), () => {});
    }, (seen) => seen.at(-1)[0]?.state.terminated && seen.at(-1)[1].status.phase === 'Running');
    request.abort();
    assert.equal(seen.at(-1)[0].state.terminated.exitCode, 4);
    const log = await core.readNamespacedPodLog({name: 'q', namespace, container: 'debug'});
    assert.equal(log, 'q\n');
    await core.deleteNamespacedPod({namespace, name: 'q', gracePeriodSeconds: 0});
  });
}
after(() => setTimeout(() => process.exit(), 500).unref());
