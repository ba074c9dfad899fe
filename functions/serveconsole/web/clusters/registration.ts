import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { group, list, may, type Meta, type Owner, person, projectNamespaces, usePermittedEach } from "../shared";

/** How many projects are asked about: each takes a request. */
const askedProjects = 50;

/** The fields of a project that say who may register virtual clusters in it. */
interface Project {
  metadata: Meta;
  spec: { owner?: Owner; members?: { kind: string; name: string; role: string }[] };
  status?: { namespace?: string };
}

/** Reports whether it is worth asking if the session may register virtual clusters in a project: its owner or an admin of it is the caller, or a team. */
function mayAdminister({ spec: { owner, members = [] } }: Project): boolean {
  const self = person.value?.user?.name;
  return Boolean(owner?.team) || (owner?.user !== undefined && owner.user === self)
    || members.some(({ kind, name, role }) => role === "admin" && (kind === "Team" || name === self));
}

/** Returns the projects that the session may list, up to 500 of them. */
async function readProjects(): Promise<Project[]> {
  if (!may("list", "projects")) return [];
  const table = await list<Project>(`${group}/projects`, { limit: "500" });
  return (table.rows ?? []).map((row) => row.object);
}

/**
 * Returns where the session may register virtual clusters: in every namespace, or in some, which are those of projects. The API decides about each of
 * them.
 */
export function useRegistration(): { everywhere: boolean; namespaces: string[] } {
  const everywhere = may("create", "virtualclusterinstances");
  const candidates = useSignal<string[]>([]);
  useEffect(() => {
    if (everywhere) return;
    const scoped = projectNamespaces();
    if (scoped.length > 0) candidates.value = scoped.slice(0, askedProjects);
    else void readProjects().then((projects) => {
      candidates.value = projects.filter(mayAdminister).map(({ status }) => status?.namespace ?? "").filter(Boolean).slice(0, askedProjects);
    }, () => undefined); // the button is missing, as while the answer is
  }, []);
  const isPermitted = usePermittedEach(candidates.value.map((namespace) => (
    { object: namespace, version: "", question: { verb: "create", resource: "virtualclusterinstances", namespace } }
  )));
  return { everywhere, namespaces: candidates.value.filter(isPermitted) };
}
