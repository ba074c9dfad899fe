import { signal } from "@preact/signals";
import { withoutTurns } from "./texts";

/** The fields of Self that the console reads: the caller of the session. */
export interface Self {
  /** The UID of the caller in audit events. */
  uid?: string;
  user?: { name: string; displayName?: string };
  team?: { name: string };
  subject?: string;
  groups?: string[];
  accessKey?: string;
  accessKeyType?: string;
  /** When the session ends. Absent: never. */
  accessKeyExpirationTimestamp?: string;
  accessKeyScope?: { projects?: { project: string }[]; virtualClusters?: { project: string; virtualCluster: string }[] };
  projectNamespacePrefix?: string;
}

/** The person who is signed in. */
export const person = signal<Self | null>(null);

/** Returns the name of a caller. */
export const nameOf = (self: Self) => self.user?.name || self.team?.name || self.subject || "";

/** Returns the name that is shown for a caller: what somebody has written, or the name. */
export const displayNameOf = (self: Self) => withoutTurns(self.user?.displayName ?? "") || nameOf(self);

/** Reports whether the person is a platform admin. A scope may still narrow what the session permits. */
export function isAdmin(): boolean {
  return person.value?.groups?.includes("platform:admins") ?? false;
}

/** Reports whether the person is an auditor, who sees what admins see. */
export function isAuditor(): boolean {
  return person.value?.groups?.includes("platform:auditors") ?? false;
}

/** The owner of an object: a user or a team. */
export interface Owner {
  user?: string;
  team?: string;
}

/** Returns an owner as the Tables of the API show it. Empty: there is no owner. */
export function ownerText(owner?: Owner): string {
  return owner?.team ? `team:${owner.team}` : owner?.user ? `user:${owner.user}` : "";
}
