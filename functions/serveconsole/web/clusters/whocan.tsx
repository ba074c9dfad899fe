import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "../parts/icons";
import { OwnerName } from "../parts/ownername";
import { ask, asRefusal, type Cluster, group, home, idOf, type Key, list, may, Problem, Refusal, Skeleton, text, type Text } from "../shared";
import { kubeconfigSelector } from "./kubeconfig";

/** A user or a team that can reach a virtual cluster, and why. */
interface Subject {
  user?: string;
  team?: string;
  /** The subject of an access key. */
  subject?: string;
  /** The access key whose groups give the right. */
  accessKey?: string;
  displayName?: string;
  /** The teams of a user that can reach it as well. */
  teams?: string[];
  source?: string;
  reason: string;
  /** The other rules that give the right. */
  also?: Grant[];
}

/** A rule that gives a right. */
interface Grant {
  source?: string;
  reason: string;
}

/** What leads to a virtual cluster, by the source of the right. The last way is for a source that the page does not know. */
const ways: { source: string; icon: IconName; label: Text }[] = [
  { source: "Owner", icon: "people", label: "whocan.owner" },
  { source: "Project", icon: "projects", label: "whocan.project" },
  { source: "Access", icon: "keys", label: "whocan.access" },
  { source: "Admin", icon: "trustrules", label: "whocan.admin" },
  { source: "", icon: "found", label: "whocan.other" },
];

/** Returns the place in ways of the way of a rule. */
function wayOf({ source }: Grant): number {
  const known = ways.findIndex((way) => way.source === source);
  return known < 0 ? ways.length - 1 : known;
}

/** How many subjects and keys of a way are drawn before somebody asks for all, and how many keys are read. */
const drawnSubjects = 6;
const readKeys = 100;

function SubjectName({ accessKey, teams = [], ...owner }: Subject) {
  return (
    <>
      <OwnerName {...owner} />
      {accessKey && <small class="quiet"> {text("whocan.accessKey", { name: accessKey })}</small>}
      {teams.length > 0 && <small class="quiet"> {text(teams.length === 1 ? "whocan.team" : "whocan.teams", { teams: teams.join(", ") })}</small>}
    </>
  );
}

/** A way with what comes along it. */
function Way({ icon, label, reason, children }: { icon: IconName; label: Text; reason?: string; children: ComponentChildren[] }) {
  const [drawn, rest] = [children.slice(0, drawnSubjects), children.slice(drawnSubjects)];
  return (
    <li>
      <div class="way"><Icon name={icon} /><div><strong>{text(label)}</strong>{reason && <small class="quiet">{reason}</small>}</div></div>
      <div class="comers">
        <ul>{drawn.map((child) => <li>{child}</li>)}</ul>
        {rest.length > 0 && <details><summary>{text("whocan.more", { count: rest.length })}</summary><ul>{rest.map((child) => <li>{child}</li>)}</ul></details>}
      </div>
    </li>
  );
}

/** The ways to a virtual cluster as a picture: who comes along each way, the way, and the virtual cluster. */
function Ways({ cluster, subjects, keys }: { cluster: Cluster; subjects: Subject[]; keys: Key[] }) {
  const comers = new Map<string, { way: number; subjects: Subject[] }>();
  for (const subject of subjects) {
    for (const grant of [subject, ...(subject.also ?? [])]) {
      const entry = comers.get(grant.reason) ?? { way: wayOf(grant), subjects: [] };
      entry.subjects.push(subject);
      comers.set(grant.reason, entry);
    }
  }
  return (
    <figure class="reach" aria-label={text("whocan.picture", { name: idOf(cluster) })}>
      <ul>
        {[...comers].sort(([, a], [, b]) => a.way - b.way).map(([reason, entry]) => (
          <Way {...ways[entry.way]!} reason={reason}>{entry.subjects.map((subject) => <SubjectName {...subject} />)}</Way>
        ))}
        {keys.length > 0 && (
          <Way icon="tokens" label="whocan.kubeconfigs">
            {keys.map(({ metadata: { name }, spec }) => (
              <span class="names"><a href={`${home}/keys?${new URLSearchParams({ name })}`}>{name}</a><OwnerName {...spec} /></span>
            ))}
          </Way>
        )}
      </ul>
      <div class="target"><Icon name="clusters" /><span>{cluster.metadata.name}</span></div>
    </figure>
  );
}

/** What the API has answered. */
interface Answer {
  subjects: Subject[];
  keys: Key[];
}

async function readAnswer(cluster: Cluster, signal: AbortSignal): Promise<Answer> {
  const { namespace, name } = cluster.metadata;
  const body = JSON.stringify({
    apiVersion: "management.platform.sh/v1", kind: "ScopePreview", spec: { whoCan: { verb: "create", group: "management.platform.sh", resource: "virtualclusterinstances", subresource: "kubeconfig", namespace, name } },
  });
  const [subjects, keys] = await Promise.all([
    ask<{ status?: { subjects?: Subject[] } }>(`${group}/scopepreviews?fieldValidation=Strict`, { method: "POST", body, signal }).then(({ status }) => status?.subjects ?? []),
    may("list", "ownedaccesskeys")
      ? list<Key>(`${group}/ownedaccesskeys`, { labelSelector: kubeconfigSelector(cluster), limit: String(readKeys) }, signal).then((table) => (table.rows ?? []).map((row) => row.object)) : [],
  ]);
  return { subjects, keys };
}

/** Who can reach a virtual cluster, and why. */
export function WhoCan({ cluster }: { cluster: Cluster }) {
  const answer = useSignal<Answer | Refusal | null>(null);
  const { uid, resourceVersion } = cluster.metadata;
  useEffect(() => {
    const current = new AbortController();
    readAnswer(cluster, current.signal).catch(asRefusal).then((read) => { if (!current.signal.aborted) answer.value = read; });
    return () => current.abort();
  }, [uid, resourceVersion]);
  const { value } = answer;
  return (
    <>
      <div role="status">
        {value === null ? <Skeleton rows={3} />
          : value instanceof Refusal ? <Problem refusal={value} />
          : value.subjects.length === 0 && <p>{text("whocan.nobody")}</p>}
      </div>
      {value && !(value instanceof Refusal) && value.subjects.length + value.keys.length > 0 && <Ways cluster={cluster} {...value} />}
      {value && !(value instanceof Refusal) && <p class="quiet">{text("whocan.hint")}</p>}
    </>
  );
}
