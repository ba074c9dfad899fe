import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { base, list, warningsOf } from "../api";
import { useSecret } from "../look";
import { useAttempt } from "../parts/attempt";
import { AsKubectl, Copy, quoted } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { download } from "../parts/download";
import { FormEnd, Warnings } from "../parts/frames";
import { Lifetime } from "../parts/lifetime";
import { Problem, asRefusal } from "../parts/problem";
import { useWrite } from "../parts/write";
import { person } from "../person";
import { may, permitted } from "../rights";
import { text, type Text } from "../texts";
import { distance, exact } from "../times";
import { pathOf, type Cluster } from "./cluster";
import type { Key } from "./key";
import { path as keysPath } from "./keys";

const lifetimes: [number, Text][] = [[3600, "hour"], [28_800, "eightHours"], [86_400, "day"], [604_800, "week"], [2_592_000, "month"]];
const label = "management.platform.sh/virtualclusterinstance";

/** A kubeconfig that was made. */
interface Made {
  text: string;
  ends?: string;
  warnings: string[];
}

/** Returns the address of a host. Virtual clusters are served with TLS, and so is the console: there is no session without it. */
const addressOf = (host: string) => `${location.protocol}//${host}`;

/** Returns a kubeconfig without a secret: a program asks the platform for tokens, with the access key that somebody has signed in with. */
function pluginFor(cluster: Cluster, server: string): string {
  const { namespace, name } = cluster.metadata;
  const ca = cluster.status?.ingress?.caData;
  const prefix = person.value?.projectNamespacePrefix ?? "";
  const project = namespace.startsWith(prefix) ? namespace.slice(prefix.length) : namespace;
  const value = (of: unknown) => JSON.stringify(of);
  const entry = value(`${name}-${namespace}`);
  return [
    "apiVersion: v1", "kind: Config", "clusters:", `- name: ${entry}`, "  cluster:", `    server: ${value(server)}`,
    ...(ca ? [`    certificate-authority-data: ${ca}`] : []),
    "contexts:", `- name: ${entry}`, `  context: {cluster: ${entry}, user: ${entry}}`, `current-context: ${entry}`,
    "users:", `- name: ${entry}`, "  user:", "    exec:", "      apiVersion: client.authentication.k8s.io/v1", "      command: platform",
    "      args:", "      - token", `      - ${value(`--server=${location.origin}${base}`)}`, `      - ${value(`--virtual-cluster=${project}/${name}`)}`,
    "      interactiveMode: Never", "",
  ].join("\n");
}

/** The access keys in earlier kubeconfigs of a virtual cluster, each of which can be taken back. */
function Earlier({ cluster }: { cluster: Cluster }) {
  const { namespace, name } = cluster.metadata;
  const found = useSignal<{ key: Key; mine: boolean }[] | null>(null);
  const { problem, remove } = useWrite(keysPath);
  async function read() {
    try {
      const table = await list<Key>(keysPath, { labelSelector: `${label}=${name},${label}-namespace=${namespace}`, limit: "100" });
      const keys = (table.rows ?? []).map((row) => row.object);
      found.value = await Promise.all(keys.map(async (key) => ({
        key, mine: await permitted({ verb: "delete", resource: "ownedaccesskeys", name: key.metadata.name }).catch(() => false),
      })));
    } catch (failure) {
      problem.value = asRefusal(failure);
    }
  }
  useEffect(() => void read(), []);
  return (
    <>
      <h3>{text("earlier")}</h3>
      <Problem of={problem.value} />
      {found.value === null ? !problem.value && <p class="quiet">{text("loading")}</p> : found.value.length === 0 ? <p>{text("earlierNone")}</p> : (
        <ul class="rows">
          {found.value.map(({ key, mine }) => (
            <li>
              <span>
                <code>{key.metadata.name}</code>{" "}
                <span class="quiet">
                  {key.spec.user ?? key.spec.team ?? key.spec.subject},{" "}
                  {key.status?.expirationTimestamp && text("earlierEnds", { when: distance(key.status.expirationTimestamp) })},{" "}
                  {key.status?.lastActivity ? text("deleteUsed", { when: distance(key.status.lastActivity) }) : text("earlierUnused")}
                </span>
              </span>
              {mine && <button type="button" aria-label={text("takeBackOne", { name: key.metadata.name })} onClick={() => void remove(key.metadata, read)}>{text("takeBack")}</button>}
            </li>
          ))}
        </ul>
      )}
      <p class="quiet">{text("earlierCertificates")}</p>
    </>
  );
}

/** The dialog in which somebody gets a kubeconfig of a virtual cluster. */
export function Kubeconfig({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const { namespace, name } = cluster.metadata;
  const path = `${pathOf(cluster)}/kubeconfig`;
  const kind = useSignal<"token" | "certificate" | "plugin">("token");
  const ttl = useSignal(86_400);
  const server = useSignal("");
  const made = useSignal<Made | null>(null);
  useSecret(made.value !== null);
  const shown = useSignal(false);
  const write = useWrite(path);
  const attempt = useAttempt();
  const signer = cluster.spec.signer?.type;
  const signs = signer !== undefined && signer !== "" && signer !== "None";
  const host = cluster.status?.ingress?.host;
  const plugin = kind.value === "plugin";
  const spec = () => {
    const given = server.value.trim();
    return { certificateTTL: ttl.value, ...(kind.value === "certificate" ? { clientCert: true } : {}), ...(given ? { server: given } : {}) };
  };
  const file = `${name}.yaml`;

  function submit(event: Event) {
    event.preventDefault();
    // What was chosen a moment ago counts, shown or not.
    if (kind.value === "plugin") {
      write.problem.value = null;
      made.value = { text: pluginFor(cluster, server.value.trim() || addressOf(host ?? "")), warnings: [] };
      return;
    }
    void write.run(() => attempt(path, JSON.stringify({ spec: spec() })), async (response) => {
      const { status } = (await response.json()) as { status: { kubeConfig: string; expirationTimestamp?: string } };
      made.value = { text: status.kubeConfig, ends: status.expirationTimestamp, warnings: warningsOf(response) };
    });
  }

  if (made.value) {
    const { text: content, ends, warnings } = made.value;
    return (
      <Dialog title={text("kubeconfigOf", { name })} close={plugin ? close : undefined} wide>
        <p>
          {text(plugin ? "kubeconfigPlugin" : kind.value === "certificate" ? "kubeconfigCertificate" : "kubeconfigToken")}{" "}
          {ends && text("kubeconfigEnds", { when: `${exact(ends)} (${distance(ends)})` })}
        </p>
        <Warnings of={warnings} />
        <div class="buttons start">
          <button type="button" class="primary" onClick={() => download(file, content)} autofocus>{text("download")}</button>
          <Copy what={() => content} />
          <button type="button" aria-pressed={shown.value} onClick={() => (shown.value = !shown.value)}>{text(shown.value ? "hide" : "show")}</button>
        </div>
        {shown.value && <pre tabIndex={0}>{content}</pre>}
        {plugin && <AsKubectl label={text("kubeconfigFirst")} command={`platform login ${quoted(location.host)}`} />}
        <AsKubectl label={text("kubeconfigTry")} command={`kubectl --kubeconfig ${quoted(file)} get namespaces`} />
        {!plugin && <AsKubectl label={text("kubeconfigProgram")} command={`platform kubeconfig ${quoted(`${namespace}/${name}`)} ${quoted(location.host)}${kind.value === "certificate" ? " --client-cert" : ""} --merge`} />}
        <div class="buttons">
          <button type="button" onClick={close}>{text("kept")}</button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={text("kubeconfigOf", { name })} close={close} wide>
      <form onSubmit={submit}>
        <fieldset>
          <legend>{text("kubeconfigKind")}</legend>
          <label class="choice">
            <input type="radio" name="kind" checked={kind.value === "token"} onChange={() => (kind.value = "token")} />
            {text("kindToken")}
          </label>
          {signs && (
            <label class="choice">
              <input type="radio" name="kind" checked={kind.value === "certificate"} onChange={() => (kind.value = "certificate")} />
              {text("kindCertificate")}
            </label>
          )}
          <label class="choice">
            <input type="radio" name="kind" checked={plugin} onChange={() => (kind.value = "plugin")} />
            {text("kindPlugin")}
          </label>
        </fieldset>
        {!plugin && <Lifetime of={ttl} offered={lifetimes} />}
        <div class="field">
          <label for="kubeconfig-server">{text("server")}</label>
          <input
            id="kubeconfig-server" type="url" placeholder={host ? addressOf(host) : ""} required={!host} value={server.value} aria-describedby="server-hint"
            autocapitalize="off" spellcheck={false} onInput={(event) => (server.value = event.currentTarget.value)}
          />
          <small id="server-hint" class="quiet">{text(host ? "serverHint" : "serverNone")}</small>
        </div>
        <FormEnd write={write} button="kubeconfigMake" close={close} focused />
        {!plugin && <AsKubectl command={`kubectl create --raw /apis/management.platform.sh/v1/namespaces/${namespace}/virtualclusterinstances/${name}/kubeconfig -f - <<< '${JSON.stringify({ spec: spec() })}'`} />}
      </form>
      {may("list", "ownedaccesskeys") && <Earlier cluster={cluster} />}
    </Dialog>
  );
}
