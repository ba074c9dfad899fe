import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { ask, group, home, list, Refusal, type Table } from "../api";
import { Problem, asRefusal } from "../parts/problem";
import { admin, nameOf, person } from "../person";
import { may, permitted, unknownRights } from "../rights";
import { text, type Text } from "../texts";
import { distance, exact, now } from "../times";
import type { AuditEvent } from "./audit";
import { asking, listsClusters, reachesClusters, someClusters, type Cluster } from "./cluster";
import type { Key } from "./key";
import { Kubeconfig } from "./kubeconfig";

const day = 86_400_000;
const week = 7 * day;
const idle = 90 * day;
/** What a part of the page lists, and how many objects it looks at. */
const listed = 5;
const looked = 500;

interface Config {
  metadata: { resourceVersion?: string };
  status: { conditions?: { type: string; status: string; reason?: string; message?: string }[]; audit?: { enabled?: boolean; dataStoreEndpoint?: string } };
}

/** What the page shows. What the caller may not see is absent. */
interface Found {
  keys?: Table<Key>;
  clusters?: { cluster: Cluster; use: boolean }[];
  moreClusters: boolean;
  /** Requests of the last day that no scope permitted. */
  refusals?: Table<AuditEvent>;
  /** Why a part is missing. */
  problem: Refusal | null;
  config?: Config;
  history?: { revision: string; author?: string; time?: string }[];
}

async function find(): Promise<Found> {
  const found: Found = { moreClusters: false, problem: null };
  const limit = String(looked);
  const parts = await Promise.allSettled([
    may("list", "ownedaccesskeys") && list<Key>(`${group}/ownedaccesskeys`, { limit }).then((table) => (found.keys = table)),
    reachesClusters() && someClusters(listed).then(async ({ found: clusters, more }) => {
      found.moreClusters = more;
      found.clusters = await Promise.all(clusters.map(async (cluster) => ({ cluster, use: await permitted(asking(cluster)) })));
    }),
    may("get", "configs/history") && ask<{ status: { revisions?: Found["history"] } }>(`${group}/config/config/history`)
      .then((answer) => (found.history = answer.status.revisions ?? [])),
    admin() && may("get", "configs") && ask<Config>(`${group}/config/config`).then(async (config) => {
      found.config = config;
      const { enabled, dataStoreEndpoint } = config.status.audit ?? {};
      // Otherwise the API cannot read the audit.
      if (!enabled || !dataStoreEndpoint || !may("list", "auditevents")) return;
      await list<AuditEvent>(`${group}/auditevents`, {
        limit: String(listed), fieldSelector: `code=403,after=${new Date(Date.now() - day).toISOString()}`,
      }).then((table) => (found.refusals = table), (failure: unknown) => {
        // Functions of AWS cannot read PostgreSQL.
        if (!(failure instanceof Refusal) || failure.code !== 501) throw failure;
      });
    }),
  ]);
  const failed = parts.find((part) => part.status === "rejected");
  if (failed) found.problem = asRefusal(failed.reason);
  return found;
}

function Part({ title, all, show = "all", none, children }: { title: Text; all?: string; show?: Text; none?: Text; children: ComponentChildren[] | null }) {
  return (
    <section class="card">
      <h2>{text(title)}</h2>
      {children === null || children.length === 0 ? <p class="quiet">{none && text(none)}</p> : <ul class="rows">{children}</ul>}
      {all && <p><a href={all}>{text(show)}<span class="hidden">: {text(title)}</span></a></p>}
    </section>
  );
}

function RefusalLine({ of }: { of: AuditEvent }) {
  const { verb, user, objectRef, requestURI, stageTimestamp } = of.status;
  return (
    <li>
      <a href={`${home}/audit?${new URLSearchParams({ code: "403", name: of.metadata.name })}`}>
        {verb} {objectRef?.resource ? [objectRef.resource, objectRef.name].filter(Boolean).join("/") : requestURI}
      </a>
      <span class="quiet">{user.username}</span>
      <time dateTime={stageTimestamp} title={exact(stageTimestamp)}>{distance(stageTimestamp)}</time>
    </li>
  );
}

function KeyLine({ of, children }: { of: Key; children: ComponentChildren }) {
  const { name } = of.metadata;
  return (
    <li>
      <a href={`${home}/keys?${new URLSearchParams({ name })}`}>{name}</a>
      <span class="quiet">{of.spec.displayName}</span>
      <span>{children}</span>
    </li>
  );
}

/** What needs the person who is signed in. */
export function Home() {
  const found = useSignal<Found | null>(null);
  const asked = useSignal<Cluster | null>(null);
  useEffect(() => {
    document.title = `${text("home")} · ${text("product")}`;
    let read = 0;
    const look = () => {
      if (document.hidden || Date.now() - read < 30_000) return;
      read = Date.now();
      void find().then((all) => (found.value = all));
    };
    look();
    // What changed while the tab was hidden is read when somebody comes back to it.
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  const { keys, clusters, moreClusters, refusals, config, history } = found.value ?? { moreClusters: false };
  const problem = unknownRights.value ?? found.value?.problem ?? null;
  const time = now.value;
  const all = (keys?.rows ?? []).map((row) => row.object);
  const over = ({ status }: Key) => status?.expirationTimestamp !== undefined && Date.parse(status.expirationTimestamp) <= time;
  const ending = all.filter((key) => key.status?.expirationTimestamp && !over(key) && !key.spec.disabled && Date.parse(key.status.expirationTimestamp) - time < week)
    .sort((a, b) => Date.parse(a.status!.expirationTimestamp!) - Date.parse(b.status!.expirationTimestamp!));
  const refused = all.filter((key) => key.spec.disabled || over(key));
  const unused = all.filter((key) => !key.spec.disabled && !over(key) && time - Date.parse(key.status?.lastActivity ?? key.metadata.creationTimestamp) > idle);
  const wrong = (config?.status.conditions ?? []).filter(({ type, status }) => status === "False" || (type === "Confirmed" && status !== "True"));
  const latest = history?.[0];
  const rest = (of: Key[]) => of.length > listed ? [<li class="quiet">{text("moreOf", { count: of.length - listed })}</li>] : [];
  return (
    <>
      <div class="title">
        <div>
          <h1>{text("homeTitle", { name: person.value ? nameOf(person.value) : "" })}</h1>
          <p class="quiet">{text("homeLead")}</p>
        </div>
      </div>
      <Problem of={problem} />
      {!found.value && <p class="quiet" role="status">{text("loading")}</p>}
      {found.value && !problem && !clusters && !keys && !config && !history && <p>{text("homeNothing")}</p>}
      {found.value && (
        <div class="parts">
          {clusters && (
            <Part title="clusters" none="clustersEmpty" all={moreClusters ? `${home}/clusters` : undefined}>
              {clusters.map(({ cluster, use }) => {
                const { namespace, name } = cluster.metadata;
                return (
                  <li>
                    {listsClusters() ? <a href={`${home}/clusters?${new URLSearchParams({ name: `${namespace}/${name}` })}`}>{namespace}/{name}</a> : <span>{namespace}/{name}</span>}
                    <span class="quiet">{cluster.status?.phase}</span>
                    {use && <button type="button" aria-label={text("kubeconfigOf", { name: `${namespace}/${name}` })} onClick={() => (asked.value = cluster)}>{text("kubeconfig")}</button>}
                  </li>
                );
              })}
            </Part>
          )}
          {keys && (
            <>
              <Part title="endingKeys" none="endingNone" all={`${home}/keys`}>
                {[...ending.slice(0, listed).map((key) => (
                  <KeyLine of={key}><time dateTime={key.status?.expirationTimestamp} title={exact(key.status!.expirationTimestamp!)}>{distance(key.status!.expirationTimestamp!)}</time></KeyLine>
                )), ...rest(ending)]}
              </Part>
              <Part title="refusedKeys" none="refusedNone">
                {[...refused.slice(0, listed).map((key) => (
                  <KeyLine of={key}>{text(key.status?.disabledByAdmin ? "disabledByAdmin" : key.spec.disabled ? "disabled" : "expired")}</KeyLine>
                )), ...rest(refused)]}
              </Part>
              <Part title="unusedKeys" none="unusedNone">
                {[...unused.slice(0, listed).map((key) => (
                  <KeyLine of={key}>{key.status?.lastActivity ? distance(key.status.lastActivity) : text("usedNever")}</KeyLine>
                )), ...rest(unused)]}
              </Part>
              {keys.metadata?.continue && <p class="quiet">{text("homePart", { count: looked })}</p>}
            </>
          )}
          {refusals && (
            <Part title="refusals" none={refusals.metadata?.continue ? "refusalsUnknown" : "refusalsNone"} all={`${home}/audit?code=403`}>
              {(refusals.rows ?? []).map((row) => <RefusalLine of={row.object} />)}
            </Part>
          )}
          {(config || history) && (
            <Part title="configuration" none="configurationWell" all={`${home}/config`} show="openPage">
              {[
                ...(latest?.author ? [<li><span>{text("configurationBy", { revision: latest.revision, author: latest.author })}</span>{latest.time && <time dateTime={latest.time} title={exact(latest.time)}>{distance(latest.time)}</time>}</li>] : []),
                ...wrong.map(({ type, status, message }) => <li><code>{type}={status}</code><span>{message}</span></li>),
              ]}
            </Part>
          )}
        </div>
      )}
      {asked.value && <Kubeconfig cluster={asked.value} close={() => (asked.value = null)} />}
    </>
  );
}
