import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import {
  asking, type Cluster, clustersIn, DetailsDialog, Fact, Gone, idOf, Kubeconfig, List, live, ownerWord, projectNamespaces, quoted,
  text, Time, useAddress, useOpened, usePermitted, type Words,
} from "../shared";

const words: Words = {
  title: "clusters", lead: "clustersLead", count: "entries", countOne: "entriesOne", countFiltered: "entriesFiltered", empty: "clustersEmpty",
};

function One({ cluster, close, ask }: { cluster: Cluster; close: () => void; ask: () => void }) {
  const { namespace, name, resourceVersion, creationTimestamp } = cluster.metadata;
  const { owner, access = [] } = cluster.spec;
  const [use] = usePermitted([asking(cluster)], resourceVersion);
  return (
    <DetailsDialog
      title={idOf(cluster)} close={close} command={`kubectl describe vci ${quoted(name)} -n ${quoted(namespace)}`}
      facts={
        <>
          {cluster.spec.displayName && <Fact name={text("displayName")}>{cluster.spec.displayName}</Fact>}
          {cluster.spec.description && <Fact name={text("description")}>{cluster.spec.description}</Fact>}
          <Fact name={text("state")}>{cluster.status?.phase}</Fact>
          <Fact name={text("endpoint")}>{cluster.status?.ingress?.host ?? text("endpointNone")}</Fact>
          <Fact name={text("owner")}>{ownerWord(owner) || text("ownerNone")}</Fact>
          <Fact name={text("signer")}>{cluster.spec.signer?.type ?? text("signerNone")}</Fact>
          <Fact name={text("created")}><Time of={creationTimestamp} none="" /></Fact>
        </>
      }
      main={use ? <button type="button" class="primary" onClick={ask}>{text("kubeconfig")}</button> : null}
    >
      <h3>{text("access")}</h3>
      {access.length === 0 ? <p>{text("accessNone")}</p> : (
        <ul>
          {access.map(({ verbs, users = [], teams = [] }) => (
            <li>{verbs.join(", ")}: {[...users.map((one) => `user:${one}`), ...teams.map((one) => `team:${one}`)].join(", ")}</li>
          ))}
        </ul>
      )}
      {(cluster.status?.conditions ?? []).length > 0 && (
        <>
          <h3>{text("conditions")}</h3>
          <ul>{cluster.status?.conditions?.map(({ type, status, message }) => <li><code>{type}={status}</code> {message}</li>)}</ul>
        </>
      )}
    </DetailsDialog>
  );
}

/** The virtual clusters that the caller may see. */
export function Clusters() {
  const choices = useMemo(projectNamespaces, []);
  const namespace = useSignal(choices[0] ?? "");
  const clusters = useMemo(() => live<Cluster>(clustersIn(namespace.value)), [namespace.value]);
  const address = useAddress();
  const { opened } = address;
  const asked = useSignal<Cluster | null>(null);
  const [project = "", name = ""] = opened.value.split("/");
  const cluster = useOpened(clusters, opened.value, `${clustersIn(project)}/${encodeURIComponent(name)}`);
  return (
    <>
      <List
        of={clusters} words={words} address={address}
        command={`kubectl get virtualclusterinstances ${namespace.value ? `-n ${quoted(namespace.value)}` : "-A"} --watch`}
      >
        {choices.length > 1 && (
          <label class="inline">
            {text("namespace")}{" "}
            <select value={namespace.value} onChange={(event) => (namespace.value = event.currentTarget.value)}>
              {choices.map((one) => <option value={one}>{one}</option>)}
            </select>
          </label>
        )}
      </List>
      {asked.value ? <Kubeconfig cluster={asked.value} close={() => (asked.value = null)} />
        : cluster === null ? <Gone name={opened.value} close={() => (opened.value = "")} />
        : cluster && <One cluster={cluster} close={() => (opened.value = "")} ask={() => { asked.value = cluster; opened.value = ""; }} />}
    </>
  );
}
