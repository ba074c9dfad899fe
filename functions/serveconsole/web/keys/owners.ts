import { person } from "../shared";

/** Reports whether an owner is the caller of the session. */
export function isOwn(owner: { user?: string; team?: string; subject?: string }): boolean {
  const self = person.value;
  if (owner.team) return owner.team === self?.team?.name;
  return owner.user ? owner.user === self?.user?.name : owner.subject === self?.subject;
}
