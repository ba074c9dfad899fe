"""Uses the platform with the Kubernetes client of Python, as clients_test.go says, and prints the objects and refusals.

It takes the kind of client (typed or dynamic), a kubeconfig, and the name of a project.
"""
import json
import sys

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

GROUP, VERSION, CLUSTERS = 'management.platform.sh', 'v1', 'virtualclusterinstances'
API = GROUP + '/' + VERSION
MERGE, STRATEGIC, APPLY = (
    'application/' + form for form in ('merge-patch+json', 'strategic-merge-patch+json', 'apply-patch+yaml'))
WAY, KUBECONFIG, PROJECT = sys.argv[1:]
NAMESPACE = 'p-' + PROJECT


def encoded(body, form):
    # The library does not encode YAML, and JSON is YAML.
    return json.dumps(body) if form == APPLY else body


class Typed:
    """The typed classes, and the class for custom objects."""

    def __init__(self, connection):
        self.connection, self.objects = connection, client.CustomObjectsApi(connection)

    def version(self):
        return client.VersionApi(self.connection).get_code().git_version

    def groups(self):
        return [group.name for group in client.ApisApi(self.connection).get_api_versions().groups]

    def resources(self):
        found = self.connection.call_api(
            '/apis/' + API, 'GET', header_params={'Accept': 'application/json'}, auth_settings=['BearerToken'],
            response_type='V1APIResourceList', _return_http_data_only=True)
        return [resource.name for resource in found.resources]

    def definitions(self):
        return len(client.ApiextensionsV1Api(self.connection).list_custom_resource_definition().items)

    def allowed(self):
        attributes = client.V1ResourceAttributes(group=GROUP, resource='projects', verb='create')
        review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
        return client.AuthorizationV1Api(self.connection).create_self_subject_access_review(review).status.allowed

    def create_project(self, body):
        return self.objects.create_cluster_custom_object(GROUP, VERSION, 'projects', body)

    def delete_project(self, name):
        return self.objects.delete_cluster_custom_object(GROUP, VERSION, 'projects', name, body=client.V1DeleteOptions())

    def create(self, body):
        return self.objects.create_namespaced_custom_object(GROUP, VERSION, NAMESPACE, CLUSTERS, body)

    def read(self, name):
        return self.objects.get_namespaced_custom_object(GROUP, VERSION, NAMESPACE, CLUSTERS, name)

    def list(self, selector='', limit=0, following=''):
        options = {'label_selector': selector, 'limit': limit, '_continue': following}
        return self.objects.list_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, CLUSTERS, **{name: value for name, value in options.items() if value})

    def replace(self, body):
        return self.objects.replace_namespaced_custom_object(GROUP, VERSION, NAMESPACE, CLUSTERS, body['metadata']['name'], body)

    def patch(self, name, body, form):
        # The class for custom objects chooses the form of a patch by itself, unless the connection says it.
        connection = client.ApiClient(self.connection.configuration, header_name='Content-Type', header_value=form)
        options = {'field_manager': 'clients', 'force': True} if form == APPLY else {}
        return client.CustomObjectsApi(connection).patch_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, CLUSTERS, name, encoded(body, form), **options)

    def delete(self, name):
        return self.objects.delete_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, CLUSTERS, name, body=client.V1DeleteOptions(propagation_policy='Background'))

    def events(self, since):
        stream = watch.Watch().stream(
            self.objects.list_namespaced_custom_object, GROUP, VERSION, NAMESPACE, CLUSTERS, resource_version=since)
        return ((event['type'], event['object']) for event in stream)


class Dynamic:
    """The dynamic client, which discovers the resources."""

    def __init__(self, connection):
        self.dynamic = dynamic.DynamicClient(connection)
        self.projects = self.dynamic.resources.get(api_version=API, kind='Project')
        self.clusters = self.dynamic.resources.get(api_version=API, kind='VirtualClusterInstance')

    def version(self):
        return self.dynamic.version['kubernetes']['gitVersion']

    def groups(self):
        return [name for name in self.dynamic.resources.api_groups if name]

    def resources(self):
        found = self.dynamic.resources.search(group=GROUP, api_version=VERSION)
        resources = [resource for listed in found for resource in (listed if isinstance(listed, list) else [listed])]
        named = [resource for resource in resources if not isinstance(resource, dynamic.resource.ResourceList)]
        return [name for resource in named for name in
                [resource.name, *(resource.name + '/' + below for below in resource.subresources)]]

    def definitions(self):
        kind = self.dynamic.resources.get(api_version='apiextensions.k8s.io/v1', kind='CustomResourceDefinition')
        return len(kind.get().items)

    def allowed(self):
        reviews = self.dynamic.resources.get(api_version='authorization.k8s.io/v1', kind='SelfSubjectAccessReview')
        attributes = {'group': GROUP, 'resource': 'projects', 'verb': 'create'}
        return reviews.create(body={
            'apiVersion': 'authorization.k8s.io/v1', 'kind': 'SelfSubjectAccessReview', 'spec': {'resourceAttributes': attributes},
        }).status.allowed

    def create_project(self, body):
        return self.projects.create(body=body).to_dict()

    def delete_project(self, name):
        return self.projects.delete(name=name).to_dict()

    def create(self, body):
        return self.clusters.create(body=body, namespace=NAMESPACE).to_dict()

    def read(self, name):
        return self.clusters.get(name=name, namespace=NAMESPACE).to_dict()

    def list(self, selector='', limit=0, following=''):
        options = {'label_selector': selector, 'limit': limit, '_continue': following}
        return self.clusters.get(namespace=NAMESPACE, **{name: value for name, value in options.items() if value}).to_dict()

    def replace(self, body):
        return self.clusters.replace(body=body, namespace=NAMESPACE).to_dict()

    def patch(self, name, body, form):
        if form == APPLY:
            return self.clusters.server_side_apply(
                body=encoded(body, form), name=name, namespace=NAMESPACE, field_manager='clients', force_conflicts=True).to_dict()
        return self.clusters.patch(body=body, name=name, namespace=NAMESPACE, content_type=form).to_dict()

    def delete(self, name):
        return self.clusters.delete(name=name, namespace=NAMESPACE, body={'propagationPolicy': 'Background'}).to_dict()

    def events(self, since):
        stream = self.clusters.watch(namespace=NAMESPACE, resource_version=since)
        return ((event['type'], event['raw_object']) for event in stream)


def refused(call, *arguments):
    try:
        call(*arguments)
    except ApiException as refusal:
        return json.loads(refusal.body)
    return None


def connection(token=''):
    settings = client.Configuration()
    config.load_kube_config(KUBECONFIG, client_configuration=settings, persist_config=False)
    if token:
        settings.api_key['authorization'] = 'Bearer ' + token
    return client.ApiClient(settings)


def cluster(name, text, **more):
    labels = {'made': 'here'} if name == 'dev' else {}
    return {'apiVersion': API, 'kind': 'VirtualClusterInstance', 'spec': {'displayName': text},
            'metadata': {'name': name, 'namespace': NAMESPACE, 'labels': labels, **more}}


def names(listed):
    return [item['metadata']['name'] for item in listed['items']]


way = {'typed': Typed, 'dynamic': Dynamic}[WAY]
api = way(connection())
seen = {
    'version': api.version(), 'groups': api.groups(), 'resources': api.resources(), 'definitions': api.definitions(), 'allowed': api.allowed(),
    'project': api.create_project({'apiVersion': API, 'kind': 'Project', 'metadata': {'name': PROJECT}}),
}
since = api.list()['metadata']['resourceVersion']
seen['created'] = api.create(cluster('dev', 'first'))
api.create(cluster('test', 'first'))
seen['read'] = api.read('dev')
seen['listed'] = [names(api.list()), names(api.list('made=here'))]
page = api.list(limit=1)
seen['pages'] = [names(page), names(api.list(limit=1, following=page['metadata']['continue']))]
seen['patched'] = api.patch('dev', {'spec': {'displayName': 'second'}}, MERGE)
seen['applied'] = api.patch('dev', cluster('dev', 'third'), APPLY)
seen['replaced'] = api.replace(cluster('dev', 'fourth', resourceVersion=seen['applied']['metadata']['resourceVersion']))
seen['refused'] = {
    'absent': refused(api.read, 'nope'),
    'taken': refused(api.create, cluster('dev', 'first')),
    'invalid': refused(api.create, cluster('long', 'x' * 300)),
    'stale': refused(api.replace, cluster('dev', 'late', resourceVersion=seen['created']['metadata']['resourceVersion'])),
    'strategic': refused(api.patch, 'dev', {'spec': {'displayName': 'fifth'}}, STRATEGIC),
    'stranger': refused(Typed(connection('nobody')).read, 'dev'),
}
for name in 'dev', 'test':
    api.delete(name)
seen['events'] = []
for kind, found in api.events(since):
    seen['events'].append([kind, found['metadata']['name'], found['spec']['displayName']])
    if [kind, found['metadata']['name']] == ['DELETED', 'test']:
        break
seen['refused']['gone'] = refused(api.read, 'dev')
api.delete_project(PROJECT)
print(json.dumps(seen, default=str))
