import { home, may, type Owner, OwnerText } from "../shared";

/** A user, a team or a subject: the initials and the name, which is a link to the user or team if the session may list them. */
export function OwnerName({ user, team, subject, displayName }: Owner & { subject?: string; displayName?: string }) {
  const [kind, name, page, resource] = team ? ["team", team, "teams", "teams"] : user ? ["user", user, "people", "users"] : ["subject", subject ?? "", "", ""];
  const shown = <OwnerText owner={`${kind}:${name}`} displayName={displayName} />;
  return page && may("list", resource) ? <a href={`${home}/${page}?${new URLSearchParams({ name })}`}>{shown}</a> : shown;
}
