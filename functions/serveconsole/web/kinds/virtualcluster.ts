import { ask, group, list, type Meta } from "../api";
import { person, type Owner } from "../person";
import { may } from "../rights";

/** What a virtual cluster permits users and teams. */
export interface AccessEntry {
  verbs: string[];
  users?: string[];
  teams?: string[];
}

/** The fields of a virtual cluster that the console reads. */
export interface Cluster {
  metadata: Meta & { namespace: string };
  spec: {
    displayName?: string;
    description?: string;
    owner?: Owner;
    access?: AccessEntry[];
    accessPoint?: { ingress?: { enabled?: boolean; host?: string; caData?: string } };
    signer?: { type?: string };
  };
  status?: {
    phase?: string;
    ingress?: { host: string; caData?: string };
    signerNotAfter?: string;
    conditions?: { type: string; status: string; reason?: string; message?: string }[];
  };
}

/** Returns the path of the virtual clusters of a namespace, or of all namespaces. */
export function clustersPath(namespace = ""): string {
  return namespace === "" ? `${group}/virtualclusterinstances` : `${group}/namespaces/${encodeURIComponent(namespace)}/virtualclusterinstances`;
}

/** Returns the path of a virtual cluster. */
export function clusterPath({ metadata: { namespace, name } }: Cluster): string {
  return `${clustersPath(namespace)}/${encodeURIComponent(name)}`;
}

/** Returns the access request for a kubeconfig of a virtual cluster. */
export function kubeconfigRequest({ metadata: { namespace, name } }: Cluster) {
  return { verb: "create", resource: "virtualclusterinstances", subresource: "kubeconfig", namespace, name };
}

/** Returns the namespaces of the projects in the scope of the session. Empty: the session lists all namespaces at once, or none. */
export function projectNamespaces(): string[] {
  const self = person.value;
  if (may("list", "virtualclusterinstances")) return [];
  const prefix = self?.projectNamespacePrefix ?? "";
  return (self?.accessKeyScope?.projects ?? []).map(({ project }) => prefix + project).sort();
}

/** Reports whether the session may list virtual clusters, in all namespaces or in the namespaces of its projects. */
export function listsClusters(): boolean {
  return may("list", "virtualclusterinstances") || projectNamespaces().length > 0;
}

/** Reports whether the session reaches virtual clusters: it may list them, or its scope names them. */
export function reachesClusters(): boolean {
  return listsClusters() || (person.value?.accessKeyScope?.virtualClusters ?? []).length > 0;
}

/** Returns the first virtual clusters that the session can reach, and whether there are more. */
export async function readFirstClusters(limit: number): Promise<{ clusters: Cluster[]; more: boolean }> {
  const self = person.value;
  const scopedClusters = may("list", "virtualclusterinstances") ? [] : self?.accessKeyScope?.virtualClusters ?? [];
  const namespaces = scopedClusters.length === 0 && projectNamespaces().length === 0 ? [""] : projectNamespaces();
  const tables = listsClusters()
    ? await Promise.all(namespaces.slice(0, limit).map((namespace) => list<Cluster>(clustersPath(namespace), { limit: String(limit) }))) : [];
  // A session whose scope names virtual clusters reads each by its name. A virtual cluster that does not exist is left out.
  const read = await Promise.all(scopedClusters.slice(0, limit).filter(({ virtualCluster }) => virtualCluster !== "*").map(({ project, virtualCluster }) =>
    ask<Cluster>(`${clustersPath((self?.projectNamespacePrefix ?? "") + project)}/${encodeURIComponent(virtualCluster)}`).catch(() => null)));
  const clusters = [...tables.flatMap((table) => (table.rows ?? []).map((row) => row.object)), ...read.filter((cluster) => cluster !== null)];
  const more = clusters.length > limit || namespaces.length > limit || scopedClusters.length > limit || tables.some((table) => Boolean(table.metadata?.continue));
  return { clusters: clusters.slice(0, limit), more };
}
