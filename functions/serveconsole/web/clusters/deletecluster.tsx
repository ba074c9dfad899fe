import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Cluster, clustersPath, DeleteDialog, group, list, may, text } from "../shared";
import { kubeconfigSelector } from "./kubeconfig";

/** How many access keys are counted. */
const countedKeys = 500;

/** The dialog that deletes a virtual cluster from the platform. It says which kubeconfigs end with it. */
export function DeleteClusterDialog({ cluster, close, deleted }: { cluster: Cluster; close: () => void; deleted: () => void }) {
  const ending = useSignal("");
  useEffect(() => {
    if (!may("list", "ownedaccesskeys")) return;
    const current = new AbortController();
    list(`${group}/ownedaccesskeys`, { labelSelector: kubeconfigSelector(cluster), limit: String(countedKeys) }, current.signal).then((table) => {
      const count = table.rows?.length ?? 0;
      ending.value = text(table.metadata?.continue ? "clusters.deleteKeysOrMore" : count === 0 ? "clusters.deleteNoKeys" : count === 1 ? "clusters.deleteKey" : "clusters.deleteKeys", { count });
    }, () => undefined); // the general sentence is there
    return () => current.abort();
  }, []);
  return (
    <DeleteDialog path={clustersPath(cluster.metadata.namespace)} object={cluster.metadata} close={close} deleted={deleted}>
      <p>{text("clusters.deleteLead")}</p>
      <ul>
        <li>{text("clusters.deleteTokens")}{ending.value && ` ${ending.value}`}</li>
        <li>{text("clusters.deleteCertificates")}</li>
        <li>{text("clusters.deleteStays")}</li>
      </ul>
    </DeleteDialog>
  );
}
