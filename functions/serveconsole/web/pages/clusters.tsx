import { batch, useSignal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { ClusterForm, accessVerbs } from "../clusters/clusterform";
import { DeleteClusterDialog } from "../clusters/deletecluster";
import { KubeconfigDialog } from "../clusters/kubeconfig";
import { useRegistration } from "../clusters/registration";
import { WhoCan } from "../clusters/whocan";
import { Activity } from "../parts/activity";
import { OwnerName } from "../parts/ownername";
import { TabbedSheet } from "../parts/tabs";
import {
  Chip, kubeconfigRequest, type Cluster, clustersPath, Fact, AbsentDialog, home, idOf, isAdmin, isAuditor, List, may, person, PhaseChip, watchList, projectNamespaces, quoteForShell, Refusal,
  text, type Text, Time, useAddress, useOpened, usePermitted, Warnings, type ListTexts,
} from "../shared";

const words: ListTexts = {
  title: "page.clusters", lead: "clusters.lead", count: "list.count", countOne: "list.countOne", countFiltered: "list.countFiltered", empty: "clusters.empty",
};

/** The words for types of signers and of conditions that the API writes. */
const signerTexts: Record<string, Text> = { CA: "clusters.signerCA", Kubeconfig: "clusters.signerKubeconfig" };
const conditionTexts: Record<string, Text> = { IngressReady: "clusters.endpoint", SignerReady: "clusters.signer" };

/** Who may do what with a virtual cluster by its access entries. */
function Access({ entries }: { entries: NonNullable<Cluster["spec"]["access"]> }) {
  const verbTexts = Object.fromEntries(accessVerbs);
  return (
    <>
      <h3>{text("clusters.access")}</h3>
      {entries.length === 0 ? <p>{text("clusters.accessNone")}</p> : (
        <ul class="rows">
          {entries.map(({ verbs, users = [], teams = [] }) => (
            <li>
              <span class="names">{users.map((user) => <OwnerName user={user} />)}{teams.map((team) => <OwnerName team={team} />)}</span>
              <span>{verbs.map((verb) => (verbTexts[verb] ? text(verbTexts[verb]) : verb)).join(" · ")}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** The facts of a virtual cluster. */
function About({ cluster }: { cluster: Cluster }) {
  const { owner, access = [], signer } = cluster.spec;
  const signerType = signer?.type ?? "None";
  const phase = cluster.status?.phase;
  return (
    <>
      <dl>
        {cluster.spec.displayName && <Fact name={text("field.displayName")}>{cluster.spec.displayName}</Fact>}
        {cluster.spec.description && <Fact name={text("field.description")}>{cluster.spec.description}</Fact>}
        {phase && <Fact name={text("field.state")}><PhaseChip phase={phase} /></Fact>}
        <Fact name={text("clusters.endpoint")}>{cluster.status?.ingress?.host ?? text("clusters.endpointNone")}</Fact>
        <Fact name={text("field.owner")}>{owner ? <OwnerName {...owner} /> : text("owner.none")}</Fact>
        <Fact name={text("clusters.signer")}>{signerType === "None" ? text("clusters.signerNone") : signerTexts[signerType] ? text(signerTexts[signerType]) : signerType}</Fact>
        <Fact name={text("field.created")}><Time instant={cluster.metadata.creationTimestamp} none="" /></Fact>
      </dl>
      <Access entries={access} />
      {(cluster.status?.conditions ?? []).length > 0 && (
        <>
          <h3>{text("field.conditions")}</h3>
          <ul class="rows">
            {cluster.status?.conditions?.map(({ type, status, message }) => (
              <li>
                <span>{message}</span>
                <Chip kind={status === "True" ? "good" : status === "False" ? "off" : "warning"}>{conditionTexts[type] ? text(conditionTexts[type]) : type}</Chip>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

/** Reports whether the session may list users and teams. */
const listsAccounts = () => may("list", "users") && may("list", "teams");

/** Reports whether the caller sees all users and teams. Others see only themselves and their teams. */
const seesAllAccounts = () => isAdmin() || isAuditor();

/** Returns the project of a namespace. */
function projectOf(namespace: string): string {
  const prefix = person.value?.projectNamespacePrefix ?? "";
  return namespace.startsWith(prefix) ? namespace.slice(prefix.length) : namespace;
}

function ClusterDetails({ cluster, tab, close, changed }: { cluster: Cluster; tab: Signal<string>; close: () => void; changed: (message: string, warnings?: string[]) => void }) {
  const { namespace, name, resourceVersion } = cluster.metadata;
  const dialog = useSignal<"change" | "delete" | "kubeconfig" | null>(null);
  const object = { resource: "virtualclusterinstances", namespace, name };
  const asksProject = !seesAllAccounts() && listsAccounts();
  const [mayUse, mayChange, mayDelete, administers] = usePermitted([
    kubeconfigRequest(cluster), { verb: "patch", ...object }, { verb: "delete", ...object },
    // Of the members of a project, only its admins register virtual clusters.
    ...(asksProject ? [{ verb: "create", resource: object.resource, namespace }] : []),
  ], resourceVersion);
  const goBack = () => { dialog.value = null; };
  const over = dialog.value === "change" ? <ClusterForm cluster={cluster} close={goBack} saved={(id, warnings) => { goBack(); changed(text("clusters.changed", { name: id }), warnings); }} />
    : dialog.value === "delete" ? <DeleteClusterDialog cluster={cluster} close={goBack} deleted={() => { close(); changed(text("clusters.deleted", { name: idOf(cluster) })); }} />
    : dialog.value === "kubeconfig" ? <KubeconfigDialog cluster={cluster} close={goBack} /> : null;
  const events = { show: "all", resource: object.resource, namespace, object: name };
  return (
    <TabbedSheet
      title={idOf(cluster)} label={text("sheet.partsOf", { name: idOf(cluster) })} chosen={tab} close={close} over={over}
      command={`kubectl describe vci ${quoteForShell(name)} -n ${quoteForShell(namespace)}`}
      tabs={[
        { name: "about", title: text("sheet.about"), content: () => <About cluster={cluster} /> },
        ...(listsAccounts() && (seesAllAccounts() || administers) ? [{ name: "whocan", title: text("whocan.title"), content: () => <WhoCan cluster={cluster} /> }] : []),
        ...(may("list", "auditevents") ? [{
          name: "events", title: text("sheet.events"), content: () => <Activity selector={`resource=virtualclusterinstances,namespace=${namespace},name=${name}`} link={`${home}/audit?${new URLSearchParams(events)}`} />,
        }] : []),
      ]}
    >
      {mayDelete && <button type="button" class="danger quietly" onClick={() => { dialog.value = "delete"; }}>{text("action.delete")}</button>}
      {mayChange && <button type="button" onClick={() => { dialog.value = "change"; }}>{text("clusters.change")}</button>}
      {mayUse && <button type="button" class="primary" onClick={() => { dialog.value = "kubeconfig"; }}>{text("kubeconfig.title")}</button>}
      {mayUse === false && <p class="quiet">{text(person.value?.accessKeyScope ? "clusters.notUsedScope" : "clusters.notUsed", { project: projectOf(namespace) })}</p>}
    </TabbedSheet>
  );
}

/** The virtual clusters that the caller may see. */
export function Clusters() {
  const namespaces = useMemo(projectNamespaces, []);
  const namespace = useSignal(namespaces[0] ?? "");
  const clusters = useMemo(() => watchList<Cluster>(clustersPath(namespace.value)), [namespace.value]);
  const tab = useSignal(new URLSearchParams(location.search).get("tab") ?? "");
  const address = useAddress({ tab });
  const { openedName, creating } = address;
  const outcome = useSignal<{ message: string; warnings: string[] }>({ message: "", warnings: [] });
  const [project = "", name = ""] = openedName.value.split("/");
  const cluster = useOpened(clusters, openedName.value, `${clustersPath(project)}/${encodeURIComponent(name)}`);
  const registration = useRegistration();
  const mayRegister = registration.everywhere || registration.namespaces.length > 0;
  const register = () => { creating.value = "yes"; };
  const close = () => batch(() => { openedName.value = tab.value = ""; });
  const announce = (message: string, warnings: string[] = []) => {
    outcome.value = { message, warnings };
    void clusters.refresh();
  };
  return (
    <>
      <List
        list={clusters} texts={words} address={address} buttons={mayRegister && <button type="button" class="primary" onClick={register}>{text("clusters.new")}</button>}
        ifEmpty={mayRegister && <>{text("clusters.emptyMayRegister")} <button type="button" class="link" onClick={register}>{text("clusters.registerOne")}</button></>}
        command={`kubectl get virtualclusterinstances ${namespace.value ? `-n ${quoteForShell(namespace.value)}` : "-A"} --watch`}
      >
        <div role="status">
          {outcome.value.message && <p class="decision yes">{outcome.value.message}</p>}
          <Warnings warnings={outcome.value.warnings} />
        </div>
        {namespaces.length > 1 && (
          <label class="inline">
            {text("field.namespace")}{" "}
            <select value={namespace.value} onChange={(event) => (namespace.value = event.currentTarget.value)}>
              {namespaces.map((choice) => <option value={choice}>{choice}</option>)}
            </select>
          </label>
        )}
      </List>
      {creating.value && mayRegister && (
        <ClusterForm
          namespaces={registration.everywhere ? undefined : registration.namespaces} close={() => { creating.value = ""; }}
          saved={(id, warnings) => { creating.value = ""; announce(text("clusters.registered", { name: id }), warnings); }}
        />
      )}
      {cluster instanceof Refusal ? <AbsentDialog name={openedName.value} refusal={cluster} close={close} />
        : cluster && <ClusterDetails key={cluster.metadata.uid} cluster={cluster} tab={tab} close={close} changed={announce} />}
    </>
  );
}
