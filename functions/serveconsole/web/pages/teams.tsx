import { useSignal } from "@preact/signals";
import { Kind } from "../parts/kind";
import {
  DetailsDialog, Fact, fieldsOf, FormDialog, group, home, may, type Meta, quoted, Remove, text, Time, usePermitted, useWrite, type Words,
} from "../shared";

/** A team, as far as the console reads it. */
interface Team {
  metadata: Meta;
  spec: { displayName?: string; users?: string[]; groups?: string[]; clusterRoles?: { name: string }[]; disabled?: boolean };
}

const path = `${group}/teams`;
const words: Words = {
  title: "teams", lead: "teamsLead", count: "entries", countOne: "entriesOne", countFiltered: "entriesFiltered", empty: "teamsEmpty",
};

function One({ team, close, changed }: { team: Team; close: () => void; changed: () => void }) {
  const { metadata: { name, uid, resourceVersion, creationTimestamp }, spec } = team;
  const deleting = useSignal(false);
  const adding = useSignal("");
  const { problem, patch } = useWrite(path);
  const [change, end] = usePermitted([{ verb: "patch", resource: "teams", name }, { verb: "delete", resource: "teams", name }], resourceVersion);
  const users = spec.users ?? [];
  // A change that somebody else has made to the team since is not overwritten.
  const write = (fields: Partial<Team["spec"]>) => patch(name, { metadata: { uid, resourceVersion }, spec: fields }, () => {
    adding.value = "";
    changed();
  });
  if (deleting.value) {
    return (
      <Remove path={path} of={team.metadata} close={() => (deleting.value = false)} done={() => { close(); changed(); }}>
        <p>{text("teamDeleteLead")}</p>
      </Remove>
    );
  }
  return (
    <DetailsDialog
      title={name} close={close} problem={problem.value} command={`kubectl describe team ${quoted(name)}`}
      facts={
        <>
          {spec.displayName && <Fact name={text("displayName")}>{spec.displayName}</Fact>}
          <Fact name={text("state")}>{text(spec.disabled ? "disabled" : "enabled")}</Fact>
          <Fact name={text("claimGroups")}>{(spec.groups ?? []).join(", ") || text("childrenNone")}</Fact>
          <Fact name={text("roles")}>{(spec.clusterRoles ?? []).map((role) => role.name).join(", ") || text("childrenNone")}</Fact>
          <Fact name={text("created")}><Time of={creationTimestamp} none="" /></Fact>
        </>
      }
      buttons={
        <>
          {end && <button type="button" class="danger quietly" onClick={() => (deleting.value = true)}>{text("delete")}</button>}
          {change && <button type="button" onClick={() => void write({ disabled: !spec.disabled })}>{text(spec.disabled ? "enable" : "disable")}</button>}
        </>
      }
    >
      <h3>{text("members")}</h3>
      {users.length === 0 ? <p>{text("childrenNone")}</p> : (
        <ul class="rows">
          {users.map((user) => (
            <li>
              {may("list", "users") ? <a href={`${home}/people?${new URLSearchParams({ name: user })}`}>{user}</a> : <span>{user}</span>}
              {change && <button type="button" aria-label={text("memberRemove", { name: user })} onClick={() => void write({ users: users.filter((one) => one !== user) })}>{text("remove")}</button>}
            </li>
          ))}
        </ul>
      )}
      {change && (
        <form class="add" onSubmit={(event) => { event.preventDefault(); void write({ users: [...users, adding.value.trim()] }); }}>
          <label>
            {text("memberAdd")}
            <input value={adding.value} required autocapitalize="off" spellcheck={false} onInput={(event) => (adding.value = event.currentTarget.value)} />
          </label>
          <button disabled={adding.value.trim() === "" || users.includes(adding.value.trim())}>{text("add")}</button>
        </form>
      )}
      <p class="quiet">{text("memberGroups")}</p>
    </DetailsDialog>
  );
}

function Create({ close, made }: { close: () => void; made: () => void }) {
  const write = useWrite(path);
  function submit(form: HTMLFormElement) {
    const field = fieldsOf(form);
    const names = (name: string) => field(name).split(/[\s,]+/).filter(Boolean);
    void write.create({
      apiVersion: "management.platform.sh/v1", kind: "Team", metadata: { name: field("name") },
      spec: { displayName: field("display"), users: names("users"), groups: names("groups") },
    }, made);
  }
  return (
    <FormDialog title={text("newTeam")} submit={submit} write={write} button="createTeam" close={close}>
      <label>{text("createName")}<input name="name" required maxLength={253} autocapitalize="off" spellcheck={false} autofocus /></label>
      <label>{text("displayName")}<input name="display" maxLength={256} /></label>
      <label>{text("members")}<input name="users" autocapitalize="off" spellcheck={false} aria-describedby="team-hint" /></label>
      <label>{text("claimGroups")}<input name="groups" autocapitalize="off" spellcheck={false} aria-describedby="team-hint" /></label>
      <p id="team-hint" class="quiet">{text("teamHint")}</p>
    </FormDialog>
  );
}

/** The teams that the caller may see. */
export function Teams() {
  return (
    <Kind<Team>
      path={path} resource="teams" words={words} command="kubectl get teams --watch" add="newTeam" off={(team) => team.spec.disabled ?? false}
      create={(close, made) => <Create close={close} made={() => made()} />}
      one={(team, close, changed) => <One key={team.metadata.uid} team={team} close={close} changed={() => changed()} />}
    />
  );
}
