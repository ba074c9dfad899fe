import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import {
  asRefusal, base, type Cluster, clusterPath, Command, formatDateTime, formatDistance, isPermitted, type Key, keysPath, lastUseText, list, may, person, Problem, quoteForShell,
  text, type Text, useIdempotentPost, useWrite, Warnings, warningsOf,
} from "../shared";
import { Field, FieldGroup } from "../parts/field";
import { FormDialog } from "../parts/form";
import { Lifetime } from "../parts/lifetime";
import { Secret, SecretDialog } from "../parts/secret";

const lifetimes: [number, Text][] = [[3600, "lifetime.hour"], [28_800, "lifetime.eightHours"], [86_400, "lifetime.day"], [604_800, "lifetime.week"], [2_592_000, "lifetime.month"]];
const label = "management.platform.sh/virtualclusterinstance";

/** Returns the label selector of the access keys in kubeconfigs of a virtual cluster. */
export function kubeconfigSelector({ metadata: { namespace, name } }: Cluster): string {
  return `${label}=${name},${label}-namespace=${namespace}`;
}

/** A kubeconfig that the API or the page has created. */
interface CreatedKubeconfig {
  secret: Secret;
  ends?: string;
  warnings: string[];
}

/** Returns the address of a host. Virtual clusters and the console are both served with TLS: without it there is no session. */
const addressOf = (host: string) => `${location.protocol}//${host}`;

/** Returns a kubeconfig without a secret. Its credential plugin requests tokens with the access key of the local sign-in. */
function pluginKubeconfig(cluster: Cluster, server: string): string {
  const { namespace, name } = cluster.metadata;
  const ca = cluster.status?.ingress?.caData;
  const prefix = person.value?.projectNamespacePrefix ?? "";
  const project = namespace.startsWith(prefix) ? namespace.slice(prefix.length) : namespace;
  const quote = (value: unknown) => JSON.stringify(value);
  const entry = quote(`${name}-${namespace}`);
  return [
    "apiVersion: v1", "kind: Config", "clusters:", `- name: ${entry}`, "  cluster:", `    server: ${quote(server)}`,
    ...(ca ? [`    certificate-authority-data: ${ca}`] : []),
    "contexts:", `- name: ${entry}`, `  context: {cluster: ${entry}, user: ${entry}}`, `current-context: ${entry}`,
    "users:", `- name: ${entry}`, "  user:", "    exec:", "      apiVersion: client.authentication.k8s.io/v1", "      command: platform",
    "      args:", "      - token", `      - ${quote(`--server=${location.origin}${base}`)}`, `      - ${quote(`--virtual-cluster=${project}/${name}`)}`,
    "      interactiveMode: Never", "",
  ].join("\n");
}

/** The access keys in earlier kubeconfigs of a virtual cluster, each with a button that revokes it. */
function EarlierKubeconfigs({ cluster }: { cluster: Cluster }) {
  const keys = useSignal<{ key: Key; mayDelete: boolean }[] | null>(null);
  const { problem, remove } = useWrite(keysPath);
  async function read() {
    try {
      const table = await list<Key>(keysPath, { labelSelector: kubeconfigSelector(cluster), limit: "100" });
      const objects = (table.rows ?? []).map((row) => row.object);
      keys.value = await Promise.all(objects.map(async (key) => ({
        key, mayDelete: await isPermitted({ verb: "delete", resource: "ownedaccesskeys", name: key.metadata.name }).catch(() => false),
      })));
    } catch (failure) {
      problem.value = asRefusal(failure);
    }
  }
  useEffect(() => void read(), []);
  return (
    <>
      <h3>{text("kubeconfig.earlier")}</h3>
      <Problem refusal={problem.value} />
      {keys.value === null ? !problem.value && <p class="quiet">{text("state.loading")}</p> : keys.value.length === 0 ? <p>{text("kubeconfig.earlierNone")}</p> : (
        <ul class="rows">
          {keys.value.map(({ key, mayDelete }) => (
            <li>
              <span>
                <code>{key.metadata.name}</code>{" "}
                <span class="quiet">
                  {key.spec.user ?? key.spec.team ?? key.spec.subject},{" "}
                  {key.status?.expirationTimestamp && text("kubeconfig.earlierExpires", { when: formatDistance(key.status.expirationTimestamp) })},{" "}
                  {lastUseText(key)}
                </span>
              </span>
              {mayDelete && <button type="button" aria-label={text("kubeconfig.revokeKey", { name: key.metadata.name })} onClick={() => void remove(key.metadata, read)}>{text("kubeconfig.revoke")}</button>}
            </li>
          ))}
        </ul>
      )}
      <p class="quiet">{text("kubeconfig.earlierCertificates")}</p>
    </>
  );
}

/** The dialog that creates a kubeconfig of a virtual cluster. */
export function KubeconfigDialog({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const { namespace, name } = cluster.metadata;
  const path = `${clusterPath(cluster)}/kubeconfig`;
  const credential = useSignal<"token" | "certificate" | "plugin">("token");
  const ttl = useSignal(86_400);
  const server = useSignal("");
  const createdKubeconfig = useSignal<CreatedKubeconfig | null>(null);
  const write = useWrite(path);
  const attempt = useIdempotentPost();
  const signer = cluster.spec.signer?.type;
  const hasSigner = signer !== undefined && signer !== "" && signer !== "None";
  const host = cluster.status?.ingress?.host;
  const plugin = credential.value === "plugin";
  const spec = () => {
    const address = server.value.trim();
    return { certificateTTL: ttl.value, ...(credential.value === "certificate" ? { clientCert: true } : {}), ...(address ? { server: address } : {}) };
  };
  const file = `${name}.yaml`;

  function submit() {
    // The signal counts, because the last choice may not be rendered yet.
    if (credential.value === "plugin") {
      write.problem.value = null;
      createdKubeconfig.value = { secret: new Secret(pluginKubeconfig(cluster, server.value.trim() || addressOf(host ?? ""))), warnings: [] };
      return;
    }
    void write.run(() => attempt(path, JSON.stringify({ spec: spec() })), async (response) => {
      const { status } = (await response.json()) as { status: { kubeConfig: string; expirationTimestamp?: string } };
      createdKubeconfig.value = { secret: new Secret(status.kubeConfig), ends: status.expirationTimestamp, warnings: warningsOf(response) };
    });
  }

  if (createdKubeconfig.value) {
    const { secret, ends, warnings } = createdKubeconfig.value;
    const lead = (
      <>
        <p>
          {text(plugin ? "kubeconfig.pluginLead" : credential.value === "certificate" ? "kubeconfig.certificateLead" : "kubeconfig.tokenLead")}{" "}
          {ends && text("kubeconfig.expires", { when: `${formatDateTime(ends)} (${formatDistance(ends)})` })}
        </p>
        <Warnings warnings={warnings} />
      </>
    );
    return (
      <SecretDialog title={text("kubeconfig.of", { name })} wide lines harmless={plugin} lead={lead} file={file} secret={secret} close={close}>
        {plugin && <Command label={text("kubeconfig.signInFirst")} command={`platform login ${quoteForShell(location.host)}`} />}
        <Command label={text("kubeconfig.use")} command={`kubectl --kubeconfig ${quoteForShell(file)} get namespaces`} />
        {!plugin && <Command label={text("kubeconfig.program")} command={`platform kubeconfig ${quoteForShell(`${namespace}/${name}`)} ${quoteForShell(location.host)}${credential.value === "certificate" ? " --client-cert" : ""} --merge`} />}
      </SecretDialog>
    );
  }
  return (
    <FormDialog title={text("kubeconfig.of", { name })} close={close} wide submit={submit} write={write} button="kubeconfig.create">
      <FieldGroup paths={["spec.clientCert"]} legend={text("kubeconfig.credential")}>
        <label class="choice">
          <input type="radio" name="kind" checked={credential.value === "token"} onChange={() => (credential.value = "token")} />
          {text("kubeconfig.token")}
        </label>
        {hasSigner && (
          <label class="choice">
            <input type="radio" name="kind" checked={credential.value === "certificate"} onChange={() => (credential.value = "certificate")} />
            {text("kubeconfig.certificate")}
          </label>
        )}
        <label class="choice">
          <input type="radio" name="kind" checked={plugin} onChange={() => (credential.value = "plugin")} />
          {text("kubeconfig.plugin")}
        </label>
      </FieldGroup>
      {!plugin && <Lifetime seconds={ttl} choices={lifetimes} path="spec.certificateTTL" />}
      <Field
        label={text("kubeconfig.server")} path="spec.server" type="url" value={server.value} set={(to) => (server.value = to)} placeholder={host ? addressOf(host) : ""} required={!host}
        hint={text(host ? "kubeconfig.serverHint" : "kubeconfig.serverNone")}
      />
      {!plugin && <Command command={`kubectl create --raw /apis/management.platform.sh/v1/namespaces/${namespace}/virtualclusterinstances/${name}/kubeconfig -f - <<< '${JSON.stringify({ spec: spec() })}'`} />}
      {may("list", "ownedaccesskeys") && <EarlierKubeconfigs cluster={cluster} />}
    </FormDialog>
  );
}
