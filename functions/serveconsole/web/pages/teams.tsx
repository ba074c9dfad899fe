import { useSignal } from "@preact/signals";
import { Kind } from "../parts/kind";
import {
  ask, AsKubectl, asRefusal, Dialog, Fact, group, home, may, type Meta, Problem, quoted, type Refusal, Remove, text, Time, usePermitted,
  type Words,
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
  const problem = useSignal<Refusal | null>(null);
  const [change, end] = usePermitted([{ verb: "patch", resource: "teams", name }, { verb: "delete", resource: "teams", name }], resourceVersion);
  const users = spec.users ?? [];
  async function write(fields: Partial<Team["spec"]>) {
    problem.value = null;
    try {
      // The team that is shown: what somebody else has changed meanwhile is not overwritten.
      await ask(`${path}/${encodeURIComponent(name)}`, {
        method: "PATCH", mediaType: "application/merge-patch+json", body: JSON.stringify({ metadata: { uid, resourceVersion }, spec: fields }),
      });
      adding.value = "";
      changed();
    } catch (failure) {
      problem.value = asRefusal(failure);
    }
  }
  if (deleting.value) {
    return (
      <Remove path={path} of={team.metadata} close={() => (deleting.value = false)} done={() => { close(); changed(); }}>
        <p>{text("teamDeleteLead")}</p>
      </Remove>
    );
  }
  return (
    <Dialog title={name} close={close} wide>
      <dl>
        {spec.displayName && <Fact name={text("displayName")}>{spec.displayName}</Fact>}
        <Fact name={text("state")}>{text(spec.disabled ? "disabled" : "enabled")}</Fact>
        <Fact name={text("claimGroups")}>{(spec.groups ?? []).join(", ") || text("childrenNone")}</Fact>
        <Fact name={text("roles")}>{(spec.clusterRoles ?? []).map((role) => role.name).join(", ") || text("childrenNone")}</Fact>
        <Fact name={text("created")}><Time of={creationTimestamp} none="" /></Fact>
      </dl>
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
      <AsKubectl command={`kubectl describe team ${quoted(name)}`} />
      <Problem of={problem.value} />
      <div class="buttons">
        {end && <button type="button" class="danger quietly" onClick={() => (deleting.value = true)}>{text("delete")}</button>}
        {change && <button type="button" onClick={() => void write({ disabled: !spec.disabled })}>{text(spec.disabled ? "enable" : "disable")}</button>}
        <span class="room" />
        <button type="button" class="primary" onClick={close}>{text("close")}</button>
      </div>
    </Dialog>
  );
}

function Create({ close, made }: { close: () => void; made: () => void }) {
  const problem = useSignal<Refusal | null>(null);
  const busy = useSignal(false);
  async function submit(event: Event) {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const field = (name: string) => String(form.get(name) ?? "").trim();
    const words = (name: string) => field(name).split(/[\s,]+/).filter(Boolean);
    busy.value = true;
    problem.value = null;
    try {
      await ask(`${path}?fieldValidation=Strict`, {
        method: "POST",
        body: JSON.stringify({
          apiVersion: "management.platform.sh/v1", kind: "Team", metadata: { name: field("name") },
          spec: { displayName: field("display"), users: words("users"), groups: words("groups") },
        }),
      });
      made();
    } catch (failure) {
      problem.value = asRefusal(failure);
    } finally {
      busy.value = false;
    }
  }
  return (
    <Dialog title={text("newTeam")} close={close}>
      <form onSubmit={submit}>
        <label>{text("createName")}<input name="name" required maxLength={253} autocapitalize="off" spellcheck={false} autofocus /></label>
        <label>{text("displayName")}<input name="display" maxLength={256} /></label>
        <label>{text("members")}<input name="users" autocapitalize="off" spellcheck={false} aria-describedby="team-hint" /></label>
        <label>{text("claimGroups")}<input name="groups" autocapitalize="off" spellcheck={false} aria-describedby="team-hint" /></label>
        <p id="team-hint" class="quiet">{text("teamHint")}</p>
        <Problem of={problem.value} />
        <div class="buttons">
          <button type="button" onClick={close}>{text("cancel")}</button>
          <button class="primary" disabled={busy.value}>{text("createTeam")}</button>
        </div>
      </form>
    </Dialog>
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
