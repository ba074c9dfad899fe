import { text, type Text } from "../shared";

/** The role that permits everything. */
export const adminRole = "platform-admin";

/** The roles on the whole platform, with their names in words. */
export const roles: [role: string, label: Text][] = [[adminRole, "people.admin"], ["platform-auditor", "people.auditor"]];

/** Returns the roles of a user or a team in words. */
export function rolesText(clusterRoles: { name: string }[] = []): string {
  const words = new Map(roles);
  return clusterRoles.map(({ name }) => (words.has(name) ? text(words.get(name)!) : name)).join(", ") || text("state.none");
}
