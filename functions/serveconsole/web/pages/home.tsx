import { batch, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { ask, group, home, list, Refusal, type Table } from "../api";
import { Chip, isForDay, OwnerText, phaseText } from "../parts/list";
import { Problem, asRefusal } from "../parts/problem";
import { isAdmin, displayNameOf, person } from "../person";
import { DeleteDialog } from "../parts/deletedialog";
import { UserText } from "../parts/usertext";
import { useWrite } from "../parts/write";
import { keysPath } from "./keys";
import { may, isPermitted, rightsProblem, usePermittedEach } from "../rights";
import periods from "../periods.json";
import { loadTexts, text, type Text } from "../texts";
import { currentTime, day, formatDistance, formatDateTime } from "../times";
import { kubeconfigRequest, listsClusters, reachesClusters, readFirstClusters, type Cluster } from "../kinds/virtualcluster";
import type { Key } from "../kinds/accesskey";
import type { AuditEvent, requestWords } from "../kinds/auditevent";
import { onDemand } from "../parts/ondemand";

const week = 7 * day;
const unusedPeriod = 90 * day;
/** How many rows a section lists, and how many objects it reads. */
const rowLimit = 5;
const readLimit = 500;
const clusterLimit = 100;
const refusalLimit = 50;

interface Config {
  metadata: { resourceVersion?: string };
  status: { conditions?: { type: string; status: string; reason?: string; message?: string }[]; auth?: Record<string, unknown>; audit?: { enabled?: boolean; dataStoreEndpoint?: string } };
}

/** The objects that the page shows. A kind that the caller may not read is absent. */
interface Overview {
  keys?: Table<Key>;
  clusters?: { cluster: Cluster; mayUse: boolean }[];
  moreClusters: boolean;
  /** The virtual clusters whose signer is known to end. */
  signers: { cluster: Cluster; end: string }[];
  /** Requests of the last day that were not permitted, and what says a request in words. */
  refusals?: Table<AuditEvent>;
  wordsOf?: typeof requestWords;
  /** Why a section is missing. */
  problem: Refusal | null;
  config?: Config;
  history?: { revision: string; author?: string; time?: string }[];
}

/** Reports whether a key is made to end soon, so that its end asks for nothing: a key of a kubeconfig or a sign-in, or one for a day or less. */
function isShortLived(key: Key): boolean {
  return key.spec.type === "Kubeconfig" || key.spec.type === "Login" || isForDay(key, key.status?.expirationTimestamp);
}

const [ExpirationDialog] = onDemand(() => import("../keys/expiration").then((it) => it.ExpirationDialog));

/** The picture of what ends is a script of its own. A page without it has the lists below. */
const loadEndings = () => Promise.all([import("../parts/endings"), loadTexts()]).then(([{ Endings }]) => Endings, () => null);

/** The picture of the requests is a script of its own as well. It is loaded after the tasks. */
const loadRequests = () => Promise.all([import("../parts/requests"), loadTexts()]).then(([{ Requests }]) => Requests, () => null);

/** The steps of the first hour are a script of its own. They stand above the tasks, and so are read before these are shown. */
async function readFirstHour({ config, keys, clusters }: Overview) {
  if (!config || !keys || !may("list", "users") || !may("list", "projects")) return null;
  const facts = { config, keys: (keys.rows ?? []).map((row) => row.object), hasClusters: (clusters ?? []).length > 0 };
  try {
    const [{ FirstHour, readFirstHour: readSteps }] = await Promise.all([import("../parts/firsthour"), loadTexts()]);
    const steps = await readSteps(facts);
    return { FirstHour, steps: steps.every(({ done }) => done) ? [] : steps };
  } catch {
    return null;
  }
}
const [KubeconfigDialog, preloadKubeconfig] = onDemand(() => import("../clusters/kubeconfig").then((it) => it.KubeconfigDialog));

/** Reports whether the session may find events. Only those who may read the configuration know whether there is a store of the audit. */
function mayHaveEvents(config?: Config): boolean {
  const { enabled, dataStoreEndpoint } = config?.status.audit ?? {};
  return may("list", "auditevents") && (!config || Boolean(enabled && dataStoreEndpoint));
}

async function readOverview(): Promise<Overview> {
  const overview: Overview = { moreClusters: false, signers: [], problem: null };
  const limit = String(readLimit);
  const parts = await Promise.allSettled([
    may("list", "ownedaccesskeys") && list<Key>(`${group}/ownedaccesskeys`, { limit }).then((table) => (overview.keys = table)),
    reachesClusters() && readFirstClusters(clusterLimit).then(async ({ clusters, more }) => {
      overview.moreClusters = more || clusters.length > rowLimit;
      overview.signers = clusters.flatMap((cluster) => {
        const end = cluster.status?.signerNotAfter;
        return end ? [{ cluster, end }] : [];
      });
      overview.clusters = await Promise.all(clusters.slice(0, rowLimit).map(async (cluster) => ({ cluster, mayUse: await isPermitted(kubeconfigRequest(cluster)) })));
    }),
    may("get", "configs/history") && ask<{ status: { revisions?: Overview["history"] } }>(`${group}/config/config/history`)
      .then((answer) => (overview.history = answer.status.revisions ?? [])),
    isAdmin() && may("get", "configs") && ask<Config>(`${group}/config/config`).then(async (config) => {
      overview.config = config;
      if (!mayHaveEvents(config)) return;
      // A read of its own: the bars below read the last 1,000 events alone, and after the tasks. They cannot say that nothing was refused.
      await list<AuditEvent>(`${group}/auditevents`, {
        limit: String(refusalLimit), fieldSelector: `code=403,after=${new Date(Date.now() - day).toISOString()}`,
      }).then(async (table) => {
        if ((table.rows ?? []).length > 0) [{ requestWords: overview.wordsOf }] = await Promise.all([import("../kinds/auditevent"), loadTexts()]);
        overview.refusals = table;
      }, (failure: unknown) => {
        // Functions of AWS cannot read PostgreSQL.
        if (!(failure instanceof Refusal) || failure.code !== 501) throw failure;
      });
    }),
  ]);
  const failed = parts.find((part) => part.status === "rejected");
  if (failed) overview.problem = asRefusal(failed.reason);
  return overview;
}

/** A card with lines. Without a line it says none; without such a text it is absent. */
function Section({ title, values, link, show = "action.showAll", none, children }: { title: Text; values?: Record<string, number>; link?: string; show?: Text; none?: Text; children: ComponentChildren[] }) {
  if (children.length === 0 && !none) return null;
  const heading = text(title, values);
  return (
    <section class="card">
      <h2>{heading}</h2>
      {children.length === 0 ? <p class="quiet">{none && text(none)}</p> : <ul class="rows">{children}</ul>}
      {link && <p><a href={link}>{text(show)}<span class="hidden">: {heading}</span></a></p>}
    </section>
  );
}

function RefusalLine({ event, words }: { event: AuditEvent; words?: string }) {
  const { user, stageTimestamp } = event.status;
  return (
    <li>
      <a href={`${home}/audit?${new URLSearchParams({ show: "refused", code: "403", name: event.metadata.name })}`}>
        {words}
      </a>
      <span class="quiet">{user.username}</span>
      <time dateTime={stageTimestamp} title={formatDateTime(stageTimestamp)}>{formatDistance(stageTimestamp)}</time>
    </li>
  );
}

/** A line about a key, with the button that settles it. */
function KeyLine({ accessKey, settle, children }: { accessKey: Key; settle: ComponentChildren; children: ComponentChildren }) {
  const { name } = accessKey.metadata;
  return (
    <li>
      <span>
        <a href={`${home}/keys?${new URLSearchParams({ name })}`}>{name}</a>
        <small>{accessKey.spec.displayName && <span class="quiet"><UserText>{accessKey.spec.displayName}</UserText> · </span>}{children}</small>
      </span>
      <span>{settle}</span>
    </li>
  );
}

/** What a line about a key asks for, with the verb that it needs. */
type Task = "extend" | "delete" | "disable";
const taskVerbs: Record<Task, string> = { extend: "patch", delete: "delete", disable: "patch" };
const taskTexts: Record<Task, [label: Text, about: Text]> = {
  extend: ["home.extend", "home.extendOf"], delete: ["home.delete", "home.deleteOf"], disable: ["action.disable", "home.disableOf"],
};

/** The first page: what needs the attention of the person who is signed in. */
export function Home() {
  const overview = useSignal<Overview | null>(null);
  const kubeconfigOf = useSignal<Cluster | null>(null);
  const settling = useSignal<{ task: Task; key: Key } | null>(null);
  const write = useWrite(keysPath);
  const endings = useSignal<typeof import("../parts/endings").Endings | null>(null);
  const requests = useSignal<typeof import("../parts/requests").Requests | null>(null);
  const firstHour = useSignal<Awaited<ReturnType<typeof readFirstHour>>>(null);
  const read = async () => {
    const [all, component] = await Promise.all([readOverview(), endings.value ?? loadEndings()]);
    const steps = await readFirstHour(all);
    batch(() => {
      endings.value = component;
      overview.value = all;
      firstHour.value = steps;
    });
    preloadKubeconfig();
    if (mayHaveEvents(all.config)) requests.value ??= await loadRequests();
  };
  useEffect(() => {
    document.title = `${text("page.home")} · ${text("app.product")}`;
    let lastRead = 0;
    const refresh = () => {
      if (document.hidden || Date.now() - lastRead < 30_000) return;
      lastRead = Date.now();
      void read();
    };
    refresh();
    // Changes while the tab was hidden are read when it is visible again.
    document.addEventListener("visibilitychange", refresh);
    return () => document.removeEventListener("visibilitychange", refresh);
  }, []);
  const { keys, clusters, moreClusters, signers, refusals, wordsOf, config, history } = overview.value ?? { moreClusters: false, signers: [] };
  const Endings = endings.value;
  const Requests = requests.value;
  const problem = rightsProblem.value ?? overview.value?.problem ?? null;
  const instant = currentTime.value;
  const allKeys = (keys?.rows ?? []).map((row) => row.object);
  const hasExpired = ({ status }: Key) => status?.expirationTimestamp !== undefined && Date.parse(status.expirationTimestamp) <= instant;
  const expiringKeys = allKeys.filter((key) => !isShortLived(key) && key.status?.expirationTimestamp && !hasExpired(key) && !key.spec.disabled && Date.parse(key.status.expirationTimestamp) - instant < week)
    .sort((a, b) => Date.parse(a.status!.expirationTimestamp!) - Date.parse(b.status!.expirationTimestamp!));
  const refusedKeys = allKeys.filter((key) => key.spec.disabled || hasExpired(key));
  const unusedKeys = allKeys.filter((key) => !key.spec.disabled && !hasExpired(key) && instant - Date.parse(key.status?.lastActivity ?? key.metadata.creationTimestamp) > unusedPeriod);
  const failedConditions = (config?.status.conditions ?? []).filter(({ type, status }) => status === "False" || (type === "Confirmed" && status !== "True"));
  const refusedRequests = refusals?.rows ?? [];
  const latestRevision = history?.[0];
  const endingSigners = signers.filter(({ end }) => Date.parse(end) - instant < periods.signerEnding * day).sort((a, b) => Date.parse(a.end) - Date.parse(b.end));
  const clusterLink = ({ metadata: { namespace, name } }: Cluster) => listsClusters() ? `${home}/clusters?${new URLSearchParams({ name: `${namespace}/${name}` })}` : undefined;
  const shown: [Task, Key[]][] = [["extend", expiringKeys], ["delete", refusedKeys], ["disable", unusedKeys]];
  const isPermittedFor = usePermittedEach(shown.flatMap(([task, keys]) => keys.slice(0, rowLimit).map(({ metadata: { name, uid, resourceVersion = "" } }) => (
    { object: `${task} ${uid}`, version: resourceVersion, question: { verb: taskVerbs[task], resource: "ownedaccesskeys", name } }
  ))));
  function settle(task: Task, key: Key) {
    const { name, uid } = key.metadata;
    if (!isPermittedFor(`${task} ${uid}`)) return null;
    const begin = () => {
      if (task === "disable") void write.patch(name, { metadata: { uid }, spec: { disabled: true } }, read);
      else settling.value = { task, key };
    };
    const [label, about] = taskTexts[task];
    return <button type="button" aria-label={text(about, { name })} disabled={write.busy.value} onClick={begin}>{text(label)}</button>;
  }
  const isAllWell = keys && (firstHour.value?.steps ?? []).length === 0 && !keys.metadata?.continue && !refusals?.metadata?.continue && !problem
    && endingSigners.length + expiringKeys.length + refusedKeys.length + unusedKeys.length + refusedRequests.length + failedConditions.length === 0;
  const moreLine = (entries: unknown[]) => entries.length > rowLimit ? [<li class="quiet">{text("home.more", { count: entries.length - rowLimit })}</li>] : [];
  return (
    <>
      <div class="title">
        <div>
          <h1>{text("home.title", { name: person.value ? displayNameOf(person.value) : "" })}</h1>
          <p class="quiet">{text("home.lead")}</p>
        </div>
      </div>
      <Problem refusal={problem} />
      <Problem refusal={write.problem.value} />
      {isAllWell && <p class="decision yes">{text("home.allWell")}</p>}
      {firstHour.value && firstHour.value.steps.length > 0 && <firstHour.value.FirstHour steps={firstHour.value.steps} />}
      {!overview.value && <p class="quiet" role="status">{text("state.loading")}</p>}
      {overview.value && !problem && !clusters && !keys && !config && !history && <p>{text("home.nothing")}</p>}
      {overview.value && (
        <div class="parts">
          <Section title="home.endingSigners" values={{ days: periods.signerEnding }}>
            {endingSigners.slice(0, rowLimit).map(({ cluster, end }) => (
              <li>
                <a href={clusterLink(cluster)}>{cluster.metadata.namespace}/{cluster.metadata.name}</a>
                <time dateTime={end} title={formatDateTime(end)}>{Date.parse(end) > instant ? formatDistance(end) : text("state.expired")}</time>
              </li>
            ))}
          </Section>
          {keys && (
            <>
              <Section title="home.expiringKeys" link={`${home}/keys?sort=Expires`}>
                {[...expiringKeys.slice(0, rowLimit).map((key) => (
                  <KeyLine accessKey={key} settle={settle("extend", key)}><time dateTime={key.status?.expirationTimestamp} title={formatDateTime(key.status!.expirationTimestamp!)}>{formatDistance(key.status!.expirationTimestamp!)}</time></KeyLine>
                )), ...moreLine(expiringKeys)]}
              </Section>
              <Section title="home.refusedKeys">
                {[...refusedKeys.slice(0, rowLimit).map((key) => (
                  <KeyLine accessKey={key} settle={settle("delete", key)}>{text(key.status?.disabledByAdmin ? "state.disabledByAdmin" : key.spec.disabled ? "state.disabled" : "state.expired")}</KeyLine>
                )), ...moreLine(refusedKeys)]}
              </Section>
              <Section title="home.unusedKeys" link={`${home}/keys?sort=Last+Activity`}>
                {[...unusedKeys.slice(0, rowLimit).map((key) => (
                  <KeyLine accessKey={key} settle={settle("disable", key)}>{key.status?.lastActivity ? formatDistance(key.status.lastActivity) : text("state.neverUsed")}</KeyLine>
                )), ...moreLine(unusedKeys)]}
              </Section>
              {keys.metadata?.continue && <p class="quiet">{text("home.partial", { count: readLimit })}</p>}
            </>
          )}
          {refusals && (
            <Section title="home.refusals" none={refusals.metadata?.continue ? "home.refusalsUnknown" : undefined} link={`${home}/audit?show=refused&code=403&last=24h`}>
              {[...refusedRequests.slice(0, rowLimit).map((row) => <RefusalLine event={row.object} words={wordsOf?.(row.object)} />), ...(refusals.metadata?.continue ? [] : moreLine(refusedRequests))]}
            </Section>
          )}
          {(config || history) && (
            <Section title="page.config" link={`${home}/config`} show="action.openPage">
              {[
                ...(latestRevision?.author ? [<li><span>{text("home.configBy", { revision: latestRevision.revision })} <OwnerText owner={latestRevision.author} /></span>{latestRevision.time && <time dateTime={latestRevision.time} title={formatDateTime(latestRevision.time)}>{formatDistance(latestRevision.time)}</time>}</li>] : []),
                ...failedConditions.map(({ type, status, message }) => <li><span>{message}</span><Chip kind={status === "False" ? "bad" : "warning"}>{type}</Chip></li>),
              ]}
            </Section>
          )}
          {clusters && (
            <Section title="page.clusters" none={keys ? undefined : "clusters.empty"} link={moreClusters ? `${home}/clusters` : undefined}>
              {clusters.map(({ cluster, mayUse }) => {
                const { namespace, name } = cluster.metadata;
                return (
                  <li>
                    {listsClusters() ? <a href={clusterLink(cluster)}>{namespace}/{name}</a> : <span>{namespace}/{name}</span>}
                    <span class="quiet word">{phaseText(cluster.status?.phase)}</span>
                    {mayUse && <button type="button" aria-label={text("kubeconfig.of", { name: `${namespace}/${name}` })} onClick={() => (kubeconfigOf.value = cluster)}>{text("kubeconfig.title")}</button>}
                  </li>
                );
              })}
            </Section>
          )}
        </div>
      )}
      {overview.value && Endings && <Endings keys={allKeys.filter((key) => !isShortLived(key))} signers={signers} />}
      {overview.value && Requests && <Requests />}
      {settling.value?.task === "extend" && (
        <ExpirationDialog accessKey={settling.value.key} extend close={() => (settling.value = null)} changed={() => { settling.value = null; void read(); }} />
      )}
      {settling.value?.task === "delete" && (
        <DeleteDialog path={keysPath} object={settling.value.key.metadata} close={() => (settling.value = null)} deleted={() => { settling.value = null; void read(); }}>
          <p>{text("keys.deleteLead")}</p>
        </DeleteDialog>
      )}
      {kubeconfigOf.value && <KubeconfigDialog cluster={kubeconfigOf.value} close={() => (kubeconfigOf.value = null)} />}
    </>
  );
}
