import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import {
  kubeconfigRequest, type Cluster, clustersPath, DetailsDialog, Fact, AbsentDialog, idOf, KubeconfigDialog, List, watchList, ownerText, projectNamespaces, quoteForShell, Refusal,
  text, Time, useAddress, useOpened, usePermitted, type ListTexts,
} from "../shared";

const words: ListTexts = {
  title: "page.clusters", lead: "clusters.lead", count: "list.count", countOne: "list.countOne", countFiltered: "list.countFiltered", empty: "clusters.empty",
};

function ClusterDetails({ cluster, close, openKubeconfig }: { cluster: Cluster; close: () => void; openKubeconfig: () => void }) {
  const { namespace, name, resourceVersion, creationTimestamp } = cluster.metadata;
  const { owner, access = [] } = cluster.spec;
  const [mayUse] = usePermitted([kubeconfigRequest(cluster)], resourceVersion);
  return (
    <DetailsDialog
      title={idOf(cluster)} close={close} command={`kubectl describe vci ${quoteForShell(name)} -n ${quoteForShell(namespace)}`}
      facts={
        <>
          {cluster.spec.displayName && <Fact name={text("field.displayName")}>{cluster.spec.displayName}</Fact>}
          {cluster.spec.description && <Fact name={text("field.description")}>{cluster.spec.description}</Fact>}
          <Fact name={text("field.state")}>{cluster.status?.phase}</Fact>
          <Fact name={text("clusters.endpoint")}>{cluster.status?.ingress?.host ?? text("clusters.endpointNone")}</Fact>
          <Fact name={text("field.owner")}>{ownerText(owner) || text("owner.none")}</Fact>
          <Fact name={text("clusters.signer")}>{cluster.spec.signer?.type ?? text("clusters.signerNone")}</Fact>
          <Fact name={text("field.created")}><Time instant={creationTimestamp} none="" /></Fact>
        </>
      }
      mainButton={mayUse ? <button type="button" class="primary" onClick={openKubeconfig}>{text("kubeconfig.title")}</button> : undefined}
    >
      <h3>{text("clusters.access")}</h3>
      {access.length === 0 ? <p>{text("clusters.accessNone")}</p> : (
        <ul>
          {access.map(({ verbs, users = [], teams = [] }) => (
            <li>{verbs.join(", ")}: {[...users.map((user) => `user:${user}`), ...teams.map((team) => `team:${team}`)].join(", ")}</li>
          ))}
        </ul>
      )}
      {(cluster.status?.conditions ?? []).length > 0 && (
        <>
          <h3>{text("field.conditions")}</h3>
          <ul>{cluster.status?.conditions?.map(({ type, status, message }) => <li><code>{type}={status}</code> {message}</li>)}</ul>
        </>
      )}
    </DetailsDialog>
  );
}

/** The virtual clusters that the caller may see. */
export function Clusters() {
  const namespaces = useMemo(projectNamespaces, []);
  const namespace = useSignal(namespaces[0] ?? "");
  const clusters = useMemo(() => watchList<Cluster>(clustersPath(namespace.value)), [namespace.value]);
  const address = useAddress();
  const { openedName } = address;
  const kubeconfigOf = useSignal<Cluster | null>(null);
  const [project = "", name = ""] = openedName.value.split("/");
  const cluster = useOpened(clusters, openedName.value, `${clustersPath(project)}/${encodeURIComponent(name)}`);
  return (
    <>
      <List
        list={clusters} texts={words} address={address}
        command={`kubectl get virtualclusterinstances ${namespace.value ? `-n ${quoteForShell(namespace.value)}` : "-A"} --watch`}
      >
        {namespaces.length > 1 && (
          <label class="inline">
            {text("field.namespace")}{" "}
            <select value={namespace.value} onChange={(event) => (namespace.value = event.currentTarget.value)}>
              {namespaces.map((choice) => <option value={choice}>{choice}</option>)}
            </select>
          </label>
        )}
      </List>
      {kubeconfigOf.value ? <KubeconfigDialog cluster={kubeconfigOf.value} close={() => (kubeconfigOf.value = null)} />
        : cluster instanceof Refusal ? <AbsentDialog name={openedName.value} refusal={cluster} close={() => (openedName.value = "")} />
        : cluster && <ClusterDetails cluster={cluster} close={() => (openedName.value = "")} openKubeconfig={() => { kubeconfigOf.value = cluster; openedName.value = ""; }} />}
    </>
  );
}
