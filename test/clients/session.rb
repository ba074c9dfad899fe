# Uses the platform with kubeclient, the Kubernetes client of Ruby, as clients_test.go says, and prints the objects and refusals.
#
# It takes a kubeconfig and the name of a project.
require 'json'
require 'kubeclient'

GROUP = 'management.platform.sh'.freeze
API = "#{GROUP}/v1".freeze
KUBECONFIG, PROJECT = ARGV
NAMESPACE = "p-#{PROJECT}".freeze
CONTEXT = Kubeclient::Config.read(KUBECONFIG).context

def client(group, token = nil)
  auth = token ? { bearer_token: token } : CONTEXT.auth_options
  Kubeclient::Client.new("#{CONTEXT.api_endpoint}/apis/#{group}", 'v1', ssl_options: CONTEXT.ssl_options, auth_options: auth)
end

def document(path)
  JSON.parse(client(GROUP).create_rest_client("#{URI(CONTEXT.api_endpoint).path}/#{path}").get(Authorization: "Bearer #{CONTEXT.auth_options[:bearer_token]}"))
end

def cluster(name, text, more = {})
  labels = name == 'dev' ? { made: 'here' } : {}
  Kubeclient::Resource.new(
    apiVersion: API, kind: 'VirtualClusterInstance', spec: { displayName: text },
    metadata: { name: name, namespace: NAMESPACE, labels: labels, **more }
  )
end

def names(listed)
  listed.map { |item| item.metadata.name }
end

def refused
  yield
  nil
rescue Kubeclient::HttpError => e
  JSON.parse(e.response.body)
end

api = client(GROUP)
api.discover
reviews = client('authorization.k8s.io')
review = Kubeclient::Resource.new(metadata: {}, spec: { resourceAttributes: { group: GROUP, resource: 'projects', verb: 'create' } })
definitions = client('apiextensions.k8s.io')
seen = {
  version: document('version')['gitVersion'],
  groups: document('apis')['groups'].map { |group| group['name'] },
  resources: document("apis/#{API}")['resources'].map { |resource| resource['name'] },
  definitions: definitions.get_custom_resource_definitions.size,
  allowed: reviews.create_self_subject_access_review(review).status.allowed,
  project: api.create_project(Kubeclient::Resource.new(metadata: { name: PROJECT })).to_h
}
since = api.get_virtual_cluster_instances(namespace: NAMESPACE).resourceVersion
seen[:created] = api.create_virtual_cluster_instance(cluster('dev', 'first')).to_h
api.create_virtual_cluster_instance(cluster('test', 'first'))
seen[:read] = api.get_virtual_cluster_instance('dev', NAMESPACE).to_h
seen[:listed] = [
  names(api.get_virtual_cluster_instances(namespace: NAMESPACE)),
  names(api.get_virtual_cluster_instances(namespace: NAMESPACE, label_selector: 'made=here'))
]
page = api.get_virtual_cluster_instances(namespace: NAMESPACE, limit: 1)
seen[:pages] = [names(page), names(api.get_virtual_cluster_instances(namespace: NAMESPACE, limit: 1, continue: page.continue))]
seen[:patched] = api.merge_patch_virtual_cluster_instance('dev', { spec: { displayName: 'second' } }, NAMESPACE).to_h
seen[:applied] = api.apply_virtual_cluster_instance(cluster('dev', 'third').to_h, field_manager: 'clients', force: true).to_h
version = seen[:applied][:metadata][:resourceVersion]
seen[:replaced] = api.update_virtual_cluster_instance(cluster('dev', 'fourth', resourceVersion: version)).to_h
old = seen[:created][:metadata][:resourceVersion]
stranger = client(GROUP, 'nobody')
seen[:refused] = {
  absent: refused { api.get_virtual_cluster_instance('nope', NAMESPACE) },
  taken: refused { api.create_virtual_cluster_instance(cluster('dev', 'first')) },
  invalid: refused { api.create_virtual_cluster_instance(cluster('long', 'x' * 300)) },
  stale: refused { api.update_virtual_cluster_instance(cluster('dev', 'late', resourceVersion: old)) },
  strategic: refused { api.patch_virtual_cluster_instance('dev', { spec: { displayName: 'fifth' } }, NAMESPACE) },
  stranger: refused { stranger.get_virtual_cluster_instance('dev', NAMESPACE) }
}
%w[dev test].each { |name| api.delete_virtual_cluster_instance(name, NAMESPACE) }
seen[:events] = []
# The library watches at the deprecated path below /watch/.
api.watch_virtual_cluster_instances(namespace: NAMESPACE, resource_version: since).each do |event|
  name = event.object.metadata.name
  seen[:events] << [event.type, name, event.object.spec.displayName]
  break if [event.type, name] == %w[DELETED test]
end
seen[:refused][:gone] = refused { api.get_virtual_cluster_instance('dev', NAMESPACE) }
api.delete_project(PROJECT)
puts JSON.generate(seen)
