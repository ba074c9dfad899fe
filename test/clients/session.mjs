// Uses the platform with @kubernetes/client-node, the Kubernetes client of JavaScript, as clients_test.go says, and prints the objects and
// refusals. It takes a kubeconfig and the name of a project.
import * as k8s from '@kubernetes/client-node';

const [kubeconfig, project] = process.argv.slice(2);
const namespace = `p-${project}`;
const [group, version, plural] = ['management.platform.sh', 'v1', 'virtualclusterinstances'];
const apiVersion = `${group}/${version}`;

const load = (token) => {
  const config = new k8s.KubeConfig();
  config.loadFromFile(kubeconfig);
  if (token) config.users = config.users.map((user) => ({ ...user, token }));
  return config;
};
const config = load();
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);

const cluster = (name, displayName, more = {}) => ({
  apiVersion, kind: 'VirtualClusterInstance', spec: { displayName },
  metadata: { name, namespace, labels: name === 'dev' ? { made: 'here' } : {}, ...more },
});
const names = (listed) => listed.items.map((item) => item.metadata.name);
const list = (options = {}) => custom.listNamespacedCustomObject({ group, version, namespace, plural, ...options });
const read = (name) => custom.getNamespacedCustomObject({ group, version, namespace, plural, name });
const create = (body) => custom.createNamespacedCustomObject({ group, version, namespace, plural, body });
const replace = (body) => custom.replaceNamespacedCustomObject({ group, version, namespace, plural, name: body.metadata.name, body });
const patch = (name, body, form, options = {}) => custom.patchNamespacedCustomObject(
  { group, version, namespace, plural, name, body, ...options }, k8s.setHeaderOptions('Content-Type', form));
// The library drops the body of a 401. Only some of its classes read the bodies of other errors.
const refused = (call) => call().then(() => null, ({ code, body = { code } }) => (typeof body === 'string' ? JSON.parse(body) : body));

const review = { spec: { resourceAttributes: { group, resource: 'projects', verb: 'create' } } };
const seen = {
  version: (await config.makeApiClient(k8s.VersionApi).getCode()).gitVersion,
  groups: (await config.makeApiClient(k8s.ApisApi).getAPIVersions()).groups.map(({ name }) => name),
  resources: (await custom.getAPIResources({ group, version })).resources.map(({ name }) => name),
  definitions: (await config.makeApiClient(k8s.ApiextensionsV1Api).listCustomResourceDefinition()).items.length,
  allowed: (await config.makeApiClient(k8s.AuthorizationV1Api).createSelfSubjectAccessReview({ body: review })).status.allowed,
  project: await objects.create({ apiVersion, kind: 'Project', metadata: { name: project } }),
};
const since = (await list()).metadata.resourceVersion;
seen.created = await create(cluster('dev', 'first'));
await objects.create(cluster('test', 'first'));
seen.read = await read('dev');
seen.listed = [names(await objects.list(apiVersion, 'VirtualClusterInstance', namespace)), names(await list({ labelSelector: 'made=here' }))];
const page = await list({ limit: 1 });
seen.pages = [names(page), names(await list({ limit: 1, _continue: page.metadata.continue }))];
seen.patched = await patch('dev', { spec: { displayName: 'second' } }, k8s.PatchStrategy.MergePatch);
seen.applied = await objects.patch(cluster('dev', 'third'), undefined, undefined, 'clients', true, k8s.PatchStrategy.ServerSideApply);
seen.replaced = await replace(cluster('dev', 'fourth', { resourceVersion: seen.applied.metadata.resourceVersion }));
seen.refused = {
  absent: await refused(() => read('nope')),
  taken: await refused(() => create(cluster('dev', 'first'))),
  invalid: await refused(() => objects.create(cluster('long', 'x'.repeat(300)))),
  stale: await refused(() => replace(cluster('dev', 'late', { resourceVersion: seen.created.metadata.resourceVersion }))),
  strategic: await refused(() => patch('dev', { spec: { displayName: 'fifth' } }, k8s.PatchStrategy.StrategicMergePatch)),
  stranger: await refused(() => load('nobody').makeApiClient(k8s.CustomObjectsApi)
    .getNamespacedCustomObject({ group, version, namespace, plural, name: 'dev' })),
};
await custom.deleteNamespacedCustomObject({ group, version, namespace, plural, name: 'dev', body: { propagationPolicy: 'Background' } });
await objects.delete(cluster('test', 'first'));
seen.events = [];
await new Promise((resolve, reject) => {
  new k8s.Watch(config).watch(`/apis/${apiVersion}/namespaces/${namespace}/${plural}`, { resourceVersion: since }, (type, found) => {
    seen.events.push([type, found.metadata.name, found.spec.displayName]);
    if (type === 'DELETED' && found.metadata.name === 'test') resolve();
  }, (failure) => reject(failure ?? new Error('the watch has ended'))).then((stop) => { seen.stop = stop; }, reject);
});
seen.stop?.abort();
delete seen.stop;
seen.refused.gone = await refused(() => read('dev'));
await objects.delete({ apiVersion, kind: 'Project', metadata: { name: project } });
console.log(JSON.stringify(seen));
