import { day, group, home, type Key, list, type Meta, text, type Text } from "../shared";
import connectorBlocks from "../connectors.json";
import { adminRole } from "../kinds/role";

/** A step of the first hour of a platform, with the page where it is done. */
export interface Step {
  label: Text;
  link: string;
  done: boolean;
}

/** What the steps are derived from, besides users and projects. */
interface Facts {
  config: { status: { auth?: Record<string, unknown>; audit?: { enabled?: boolean } } };
  keys: Key[];
  hasClusters: boolean;
}

/** Where the browser keeps when two admins and a project were found, and for how long they are not read again, in milliseconds. */
const foundItem = "firsthour.found";
const foundPeriod = day;

/** Reads whether there are two admins and a project. */
async function readAccounts(): Promise<{ admins: boolean; project: boolean }> {
  const age = Date.now() - Number(localStorage.getItem(foundItem));
  if (age >= 0 && age < foundPeriod) return { admins: true, project: true };
  const [users, projects] = await Promise.all([
    list<{ metadata: Meta; spec: { disabled?: boolean; clusterRoles?: { name: string }[] } }>(`${group}/users`, { limit: "500" }),
    list<{ metadata: Meta }>(`${group}/projects`, { limit: "1" }),
  ]);
  const admins = (users.rows ?? []).filter(({ object: { spec } }) => !spec.disabled && spec.clusterRoles?.some(({ name }) => name === adminRole));
  const found = { admins: admins.length > 1, project: (projects.rows ?? []).length > 0 };
  if (found.admins && found.project) localStorage.setItem(foundItem, String(Date.now()));
  return found;
}

/** Reads which steps of the first hour are done. Source: docs/people.md. */
export async function readFirstHour({ config, keys, hasClusters }: Facts): Promise<Step[]> {
  const { admins, project } = await readAccounts();
  const auth = config.status.auth ?? {};
  const connectors = Array.isArray(auth.connectors) ? auth.connectors.length : 0;
  // The first key has the group itself: keys of users with the role get it from their user.
  const firstKey = keys.find(({ spec, status }) => spec.groups?.includes("platform:admins") && !spec.disabled && !status?.expirationTimestamp);
  return [
    { label: "firsthour.signIn", link: `${home}/config`, done: connectors > 0 || connectorBlocks.some((block) => auth[block]) },
    { label: "firsthour.admins", link: `${home}/people`, done: admins },
    { label: "firsthour.project", link: `${home}/projects`, done: project },
    { label: "firsthour.cluster", link: `${home}/clusters`, done: hasClusters },
    { label: "firsthour.key", link: firstKey ? `${home}/keys?${new URLSearchParams({ name: firstKey.metadata.name })}` : `${home}/keys`, done: !firstKey },
    { label: "firsthour.audit", link: `${home}/config`, done: Boolean(config.status.audit?.enabled) },
  ];
}

/** The steps of the first hour, until all of them are done. */
export function FirstHour({ steps }: { steps: Step[] }) {
  return (
    <section class="card steps">
      <h2>{text("firsthour.title")}</h2>
      <p class="quiet">{text("firsthour.lead")}</p>
      <ul>
        {steps.map(({ label, link, done }) => (
          <li>
            <span class={done ? "chip good" : "chip todo"}>{text(done ? "firsthour.done" : "firsthour.open")}</span> <a href={link}>{text(label)}</a>
          </li>
        ))}
      </ul>
    </section>
  );
}
