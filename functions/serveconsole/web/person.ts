import { signal } from "@preact/signals";

/** Who the session acts as, as far as the console reads it. */
export interface Self {
  /** The kind and the name of the caller, as audit events have them. */
  uid?: string;
  user?: { name: string; displayName?: string };
  team?: { name: string };
  subject?: string;
  groups?: string[];
  accessKey?: string;
  accessKeyType?: string;
  /** When the session ends. Absent: it does not. */
  accessKeyExpirationTimestamp?: string;
  accessKeyScope?: { projects?: { project: string }[]; virtualClusters?: { project: string; virtualCluster: string }[] };
  projectNamespacePrefix?: string;
}

/** The person who is signed in. */
export const person = signal<Self | null>(null);

/** The name that is shown for somebody. */
export function displayNameOf(self: Self): string {
  return self.user?.displayName || self.user?.name || self.team?.name || self.subject || "";
}

/** Whether the person is an admin of the platform. What they may do, a scope narrows. */
export function isAdmin(): boolean {
  return person.value?.groups?.includes("platform:admins") ?? false;
}

/** The owner of an object: a user or a team. */
export interface Owner {
  user?: string;
  team?: string;
}

/** Returns an owner as the lists of the API show it, or nothing if there is none. */
export function ownerText(owner?: Owner): string {
  return owner?.team ? `team:${owner.team}` : owner?.user ? `user:${owner.user}` : "";
}
