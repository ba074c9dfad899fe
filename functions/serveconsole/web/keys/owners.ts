import { isAdmin, type Key, may, person } from "../shared";

/** Reports whether an owner is the caller of the session. */
export function isOwn(owner: { user?: string; team?: string; subject?: string }): boolean {
  const self = person.value;
  if (owner.team) return owner.team === self?.team?.name;
  return owner.user ? owner.user === self?.user?.name : owner.subject === self?.subject;
}

/** Returns the teams of the caller. */
export function ownTeams(): string[] {
  const prefix = "platform:team:";
  return (person.value?.groups ?? []).filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
}

/** Returns the kinds of owners, besides the caller, for which the session may create keys. Members do for their teams, and admins for everybody. */
export function ownerKinds(): ("team" | "user")[] {
  const teams = may("create", "teams/accesskeys") && (isAdmin() || ownTeams().length > 0);
  return [...(teams ? ["team" as const] : []), ...(isAdmin() && may("create", "users/accesskeys") ? ["user" as const] : [])];
}

/** Reports whether the session may create a key with the owner of a key. */
export function mayOwn({ user, team, subject }: Key["spec"]): boolean {
  if (isOwn({ user, team, subject })) return true;
  if (team) return ownerKinds().includes("team") && (isAdmin() || ownTeams().includes(team));
  return Boolean(user) && ownerKinds().includes("user");
}
