import { group, list, type Meta } from "../api";
import { text } from "../texts";
import { formatDistance } from "../times";
import type { Key } from "../kinds/accesskey";
import { keysPath } from "../pages/keys";

/** The keys and tokens that were created with a key. Objects that the caller may not see are absent. */
interface Children {
  keys: string[];
  tokens: number;
}

/** All children of a key, and the children that stop working with the key. */
export interface KeyChildren {
  all: Children;
  bound: Children;
}

export async function readChildren(uid: string): Promise<KeyChildren> {
  const query = { fieldSelector: `status.createdBy.uid=${uid}`, limit: "500" };
  const [keys, tokens] = await Promise.all([
    list<Key>(keysPath, query),
    list<{ metadata: Meta }>(`${group}/directclusterendpointtokens`, query).catch(() => ({ rows: [] })),
  ]);
  const children = (keys.rows ?? []).map((row) => row.object);
  const namesOf = (keys: Key[]) => keys.map((key) => key.metadata.name);
  const count = tokens.rows?.length ?? 0;
  return {
    all: { keys: namesOf(children), tokens: count },
    bound: { keys: namesOf(children.filter((key) => key.status?.lineage?.[0]?.bounds)), tokens: count },
  };
}

/** Says when a key was last used. */
export function lastUseText({ status }: Key): string {
  return status?.lastActivity ? text("state.lastUsed", { when: formatDistance(status.lastActivity) }) : text("keys.unused");
}

/** The keys and tokens in words, with the names of the first keys. */
export function CreatedObjects({ children: { keys, tokens } }: { children: Children }) {
  if (keys.length + tokens === 0) return <p>{text("state.nothing")}</p>;
  return (
    <ul>
      {keys.length > 0 && <li>{text(keys.length === 1 ? "count.key" : "count.keys", { count: keys.length })}: {keys.slice(0, 20).join(", ")}{keys.length > 20 && " …"}</li>}
      {tokens > 0 && <li>{text(tokens === 1 ? "count.token" : "count.tokens", { count: tokens })}</li>}
    </ul>
  );
}
