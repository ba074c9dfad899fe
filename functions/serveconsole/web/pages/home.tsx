import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { ask, group, home, list, Refusal, type Table } from "../api";
import { Problem, asRefusal } from "../parts/problem";
import { isAdmin, displayNameOf, person } from "../person";
import { may, isPermitted, rightsProblem } from "../rights";
import { text, type Text } from "../texts";
import { formatDistance, formatDateTime, currentTime } from "../times";
import type { AuditEvent } from "./audit";
import { kubeconfigRequest, listsClusters, reachesClusters, readFirstClusters, type Cluster } from "../kinds/virtualcluster";
import type { Key } from "../kinds/accesskey";
import { KubeconfigDialog } from "../clusters/kubeconfig";

const day = 86_400_000;
const week = 7 * day;
const unusedPeriod = 90 * day;
/** How many rows a section lists, and how many objects it reads. */
const rowLimit = 5;
const readLimit = 500;

interface Config {
  metadata: { resourceVersion?: string };
  status: { conditions?: { type: string; status: string; reason?: string; message?: string }[]; audit?: { enabled?: boolean; dataStoreEndpoint?: string } };
}

/** The objects that the page shows. A kind that the caller may not read is absent. */
interface Overview {
  keys?: Table<Key>;
  clusters?: { cluster: Cluster; mayUse: boolean }[];
  moreClusters: boolean;
  /** Requests of the last day that no scope permitted. */
  refusals?: Table<AuditEvent>;
  /** Why a section is missing. */
  problem: Refusal | null;
  config?: Config;
  history?: { revision: string; author?: string; time?: string }[];
}

async function readOverview(): Promise<Overview> {
  const overview: Overview = { moreClusters: false, problem: null };
  const limit = String(readLimit);
  const parts = await Promise.allSettled([
    may("list", "ownedaccesskeys") && list<Key>(`${group}/ownedaccesskeys`, { limit }).then((table) => (overview.keys = table)),
    reachesClusters() && readFirstClusters(rowLimit).then(async ({ clusters, more }) => {
      overview.moreClusters = more;
      overview.clusters = await Promise.all(clusters.map(async (cluster) => ({ cluster, mayUse: await isPermitted(kubeconfigRequest(cluster)) })));
    }),
    may("get", "configs/history") && ask<{ status: { revisions?: Overview["history"] } }>(`${group}/config/config/history`)
      .then((answer) => (overview.history = answer.status.revisions ?? [])),
    isAdmin() && may("get", "configs") && ask<Config>(`${group}/config/config`).then(async (config) => {
      overview.config = config;
      const { enabled, dataStoreEndpoint } = config.status.audit ?? {};
      // Otherwise the API cannot read the audit.
      if (!enabled || !dataStoreEndpoint || !may("list", "auditevents")) return;
      await list<AuditEvent>(`${group}/auditevents`, {
        limit: String(rowLimit), fieldSelector: `code=403,after=${new Date(Date.now() - day).toISOString()}`,
      }).then((table) => (overview.refusals = table), (failure: unknown) => {
        // Functions of AWS cannot read PostgreSQL.
        if (!(failure instanceof Refusal) || failure.code !== 501) throw failure;
      });
    }),
  ]);
  const failed = parts.find((part) => part.status === "rejected");
  if (failed) overview.problem = asRefusal(failed.reason);
  return overview;
}

function Section({ title, link, show = "action.showAll", none, children }: { title: Text; link?: string; show?: Text; none?: Text; children: ComponentChildren[] | null }) {
  return (
    <section class="card">
      <h2>{text(title)}</h2>
      {children === null || children.length === 0 ? <p class="quiet">{none && text(none)}</p> : <ul class="rows">{children}</ul>}
      {link && <p><a href={link}>{text(show)}<span class="hidden">: {text(title)}</span></a></p>}
    </section>
  );
}

function RefusalLine({ event }: { event: AuditEvent }) {
  const { verb, user, objectRef, requestURI, stageTimestamp } = event.status;
  return (
    <li>
      <a href={`${home}/audit?${new URLSearchParams({ code: "403", name: event.metadata.name })}`}>
        {verb} {objectRef?.resource ? [objectRef.resource, objectRef.name].filter(Boolean).join("/") : requestURI}
      </a>
      <span class="quiet">{user.username}</span>
      <time dateTime={stageTimestamp} title={formatDateTime(stageTimestamp)}>{formatDistance(stageTimestamp)}</time>
    </li>
  );
}

function KeyLine({ accessKey, children }: { accessKey: Key; children: ComponentChildren }) {
  const { name } = accessKey.metadata;
  return (
    <li>
      <a href={`${home}/keys?${new URLSearchParams({ name })}`}>{name}</a>
      <span class="quiet">{accessKey.spec.displayName}</span>
      <span>{children}</span>
    </li>
  );
}

/** The first page: what needs the attention of the person who is signed in. */
export function Home() {
  const overview = useSignal<Overview | null>(null);
  const kubeconfigOf = useSignal<Cluster | null>(null);
  useEffect(() => {
    document.title = `${text("page.home")} · ${text("app.product")}`;
    let lastRead = 0;
    const refresh = () => {
      if (document.hidden || Date.now() - lastRead < 30_000) return;
      lastRead = Date.now();
      void readOverview().then((all) => (overview.value = all));
    };
    refresh();
    // Changes while the tab was hidden are read when it is visible again.
    document.addEventListener("visibilitychange", refresh);
    return () => document.removeEventListener("visibilitychange", refresh);
  }, []);
  const { keys, clusters, moreClusters, refusals, config, history } = overview.value ?? { moreClusters: false };
  const problem = rightsProblem.value ?? overview.value?.problem ?? null;
  const instant = currentTime.value;
  const allKeys = (keys?.rows ?? []).map((row) => row.object);
  const hasExpired = ({ status }: Key) => status?.expirationTimestamp !== undefined && Date.parse(status.expirationTimestamp) <= instant;
  const expiringKeys = allKeys.filter((key) => key.status?.expirationTimestamp && !hasExpired(key) && !key.spec.disabled && Date.parse(key.status.expirationTimestamp) - instant < week)
    .sort((a, b) => Date.parse(a.status!.expirationTimestamp!) - Date.parse(b.status!.expirationTimestamp!));
  const refusedKeys = allKeys.filter((key) => key.spec.disabled || hasExpired(key));
  const unusedKeys = allKeys.filter((key) => !key.spec.disabled && !hasExpired(key) && instant - Date.parse(key.status?.lastActivity ?? key.metadata.creationTimestamp) > unusedPeriod);
  const failedConditions = (config?.status.conditions ?? []).filter(({ type, status }) => status === "False" || (type === "Confirmed" && status !== "True"));
  const latestRevision = history?.[0];
  const moreLine = (keys: Key[]) => keys.length > rowLimit ? [<li class="quiet">{text("home.more", { count: keys.length - rowLimit })}</li>] : [];
  return (
    <>
      <div class="title">
        <div>
          <h1>{text("home.title", { name: person.value ? displayNameOf(person.value) : "" })}</h1>
          <p class="quiet">{text("home.lead")}</p>
        </div>
      </div>
      <Problem refusal={problem} />
      {!overview.value && <p class="quiet" role="status">{text("state.loading")}</p>}
      {overview.value && !problem && !clusters && !keys && !config && !history && <p>{text("home.nothing")}</p>}
      {overview.value && (
        <div class="parts">
          {clusters && (
            <Section title="page.clusters" none="clusters.empty" link={moreClusters ? `${home}/clusters` : undefined}>
              {clusters.map(({ cluster, mayUse }) => {
                const { namespace, name } = cluster.metadata;
                return (
                  <li>
                    {listsClusters() ? <a href={`${home}/clusters?${new URLSearchParams({ name: `${namespace}/${name}` })}`}>{namespace}/{name}</a> : <span>{namespace}/{name}</span>}
                    <span class="quiet">{cluster.status?.phase}</span>
                    {mayUse && <button type="button" aria-label={text("kubeconfig.of", { name: `${namespace}/${name}` })} onClick={() => (kubeconfigOf.value = cluster)}>{text("kubeconfig.title")}</button>}
                  </li>
                );
              })}
            </Section>
          )}
          {keys && (
            <>
              <Section title="home.expiringKeys" none="home.expiringKeysNone" link={`${home}/keys`}>
                {[...expiringKeys.slice(0, rowLimit).map((key) => (
                  <KeyLine accessKey={key}><time dateTime={key.status?.expirationTimestamp} title={formatDateTime(key.status!.expirationTimestamp!)}>{formatDistance(key.status!.expirationTimestamp!)}</time></KeyLine>
                )), ...moreLine(expiringKeys)]}
              </Section>
              <Section title="home.refusedKeys" none="home.refusedKeysNone">
                {[...refusedKeys.slice(0, rowLimit).map((key) => (
                  <KeyLine accessKey={key}>{text(key.status?.disabledByAdmin ? "state.disabledByAdmin" : key.spec.disabled ? "state.disabled" : "state.expired")}</KeyLine>
                )), ...moreLine(refusedKeys)]}
              </Section>
              <Section title="home.unusedKeys" none="home.unusedKeysNone">
                {[...unusedKeys.slice(0, rowLimit).map((key) => (
                  <KeyLine accessKey={key}>{key.status?.lastActivity ? formatDistance(key.status.lastActivity) : text("state.neverUsed")}</KeyLine>
                )), ...moreLine(unusedKeys)]}
              </Section>
              {keys.metadata?.continue && <p class="quiet">{text("home.partial", { count: readLimit })}</p>}
            </>
          )}
          {refusals && (
            <Section title="home.refusals" none={refusals.metadata?.continue ? "home.refusalsUnknown" : "home.refusalsNone"} link={`${home}/audit?code=403`}>
              {(refusals.rows ?? []).map((row) => <RefusalLine event={row.object} />)}
            </Section>
          )}
          {(config || history) && (
            <Section title="page.config" none="home.configUnchanged" link={`${home}/config`} show="action.openPage">
              {[
                ...(latestRevision?.author ? [<li><span>{text("home.configBy", { revision: latestRevision.revision, author: latestRevision.author })}</span>{latestRevision.time && <time dateTime={latestRevision.time} title={formatDateTime(latestRevision.time)}>{formatDistance(latestRevision.time)}</time>}</li>] : []),
                ...failedConditions.map(({ type, status, message }) => <li><code>{type}={status}</code><span>{message}</span></li>),
              ]}
            </Section>
          )}
        </div>
      )}
      {kubeconfigOf.value && <KubeconfigDialog cluster={kubeconfigOf.value} close={() => (kubeconfigOf.value = null)} />}
    </>
  );
}
