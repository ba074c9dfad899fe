import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { rolesText } from "../kinds/role";
import { Field } from "../parts/field";
import { Form, FormDialog, FormProblem } from "../parts/form";
import { KindPage } from "../parts/kindpage";
import { OwnerName } from "../parts/ownername";
import {
  Chip, DetailsDialog, Fact, group, type Meta, quoteForShell, DeleteDialog, text, Time, usePermitted, useWrite, type ListTexts,
} from "../shared";

/** The fields of a team that the console reads. */
interface Team {
  metadata: Meta;
  spec: { displayName?: string; users?: string[]; groups?: string[]; clusterRoles?: { name: string }[]; disabled?: boolean };
}

const path = `${group}/teams`;
const words: ListTexts = {
  title: "page.teams", lead: "teams.lead", count: "list.count", countOne: "list.countOne", countFiltered: "list.countFiltered", empty: "teams.empty",
};

const namesOf = (names: string) => names.split(/[\s,]+/).filter(Boolean);

function TeamDetails({ team, close, changed }: { team: Team; close: () => void; changed: (message?: string) => void }) {
  const { metadata: { name, uid, resourceVersion, creationTimestamp }, spec } = team;
  const dialog = useSignal<"change" | "delete" | null>(null);
  const newMember = useSignal("");
  const { problem, patch } = useWrite(path);
  const adding = useWrite(path);
  const [mayChange, mayDelete] = usePermitted([{ verb: "patch", resource: "teams", name }, { verb: "delete", resource: "teams", name }], resourceVersion);
  const users = spec.users ?? [];
  // With the resource version, the API refuses to overwrite a concurrent change of the team.
  const changeOf = (fields: Partial<Team["spec"]>) => ({ metadata: { uid, resourceVersion }, spec: fields });
  const write = (fields: Partial<Team["spec"]>) => patch(name, changeOf(fields), () => changed());
  const add = () => adding.patch(name, changeOf({ users: [...users, newMember.value.trim()] }), () => {
    newMember.value = "";
    changed();
  });
  const goBack = () => { dialog.value = null; };
  const over = dialog.value === "change" ? <ChangeTeamDialog team={team} close={goBack} saved={() => { goBack(); changed(text("projects.changed", { name })); }} />
    : dialog.value === "delete" ? (
      <DeleteDialog path={path} object={team.metadata} close={goBack} deleted={() => { close(); changed(); }}>
        <p>{text("teams.deleteLead")}</p>
      </DeleteDialog>
    ) : null;
  return (
    <DetailsDialog
      title={name} close={close} over={over} problem={problem.value} command={`kubectl describe team ${quoteForShell(name)}`} events={{ resource: "teams", object: name }}
      facts={
        <>
          {spec.displayName && <Fact name={text("field.displayName")}>{spec.displayName}</Fact>}
          <Fact name={text("field.state")}><Chip kind={spec.disabled ? "off" : "good"}>{text(spec.disabled ? "state.disabled" : "state.enabled")}</Chip></Fact>
          <Fact name={text("claim.groups")}>{(spec.groups ?? []).join(", ") || text("state.none")}</Fact>
          <Fact name={text("teams.roles")}>{rolesText(spec.clusterRoles)}</Fact>
          <Fact name={text("field.created")}><Time instant={creationTimestamp} none="" /></Fact>
        </>
      }
      buttons={
        <>
          {mayDelete && <button type="button" class="danger quietly" onClick={() => { dialog.value = "delete"; }}>{text("action.delete")}</button>}
          {mayChange && <button type="button" onClick={() => { dialog.value = "change"; }}>{text("projects.changeAsk")}</button>}
          {mayChange && <button type="button" onClick={() => void write({ disabled: !spec.disabled })}>{text(spec.disabled ? "action.enable" : "action.disable")}</button>}
        </>
      }
    >
      <h3>{text("field.members")}</h3>
      {users.length === 0 ? <p>{text("teams.noMembers")}</p> : (
        <ul class="rows">
          {users.map((user) => (
            <li>
              <span><OwnerName user={user} /></span>
              {mayChange && <button type="button" aria-label={text("teams.memberRemove", { name: user })} onClick={() => void write({ users: users.filter((member) => member !== user) })}>{text("action.remove")}</button>}
            </li>
          ))}
        </ul>
      )}
      {mayChange && (
        <Form class="add" write={adding} submit={add}>
          <Field label={text("teams.memberName")} path={`spec.users[${users.length}]`} names={{ resource: "users" }} value={newMember.value} set={(to) => (newMember.value = to)} required />
          <button disabled={newMember.value.trim() === "" || users.includes(newMember.value.trim())}>{text("action.add")}</button>
          <FormProblem />
        </Form>
      )}
      <p class="quiet">{text("teams.memberGroups")}</p>
    </DetailsDialog>
  );
}

/** The form of a team as it was when the form was opened. Members have buttons of their own. */
function ChangeTeamDialog({ team, close, saved }: { team: Team; close: () => void; saved: () => void }) {
  // With the resource version that was read, the API refuses to overwrite a concurrent change.
  const { metadata: { name, uid, resourceVersion }, spec } = useMemo(() => team, []);
  const displayName = useSignal(spec.displayName ?? "");
  const groups = useSignal((spec.groups ?? []).join(" "));
  const write = useWrite(path);
  const submit = () => write.patch(name, { metadata: { uid, resourceVersion }, spec: { displayName: displayName.value.trim(), groups: namesOf(groups.value) } }, saved);
  return (
    <FormDialog title={text("projects.change", { name })} close={close} submit={submit} write={write} button="action.save">
      <Field label={text("field.displayName")} path="spec.displayName" value={displayName.value} set={(to) => (displayName.value = to)} autofocus />
      <Field label={text("claim.groups")} path="spec.groups" value={groups.value} set={(to) => (groups.value = to)} hint={text("teams.namesHint")} />
    </FormDialog>
  );
}

function NewTeamDialog({ close, created }: { close: () => void; created: () => void }) {
  const name = useSignal("");
  const displayName = useSignal("");
  const users = useSignal("");
  const groups = useSignal("");
  const write = useWrite(path);
  const submit = () => write.create({
    apiVersion: "management.platform.sh/v1", kind: "Team", metadata: { name: name.value.trim() },
    spec: { displayName: displayName.value.trim(), users: namesOf(users.value), groups: namesOf(groups.value) },
  }, created);
  return (
    <FormDialog title={text("teams.new")} submit={submit} write={write} button="teams.create" close={close}>
      <Field label={text("field.name")} path="metadata.name" value={name.value} set={(to) => (name.value = to)} required maxLength={253} autofocus />
      <Field label={text("field.displayName")} path="spec.displayName" value={displayName.value} set={(to) => (displayName.value = to)} maxLength={256} />
      <Field label={text("field.members")} path="spec.users" names={{ resource: "users" }} several value={users.value} set={(to) => (users.value = to)} hint={text("teams.namesHint")} />
      <Field label={text("claim.groups")} path="spec.groups" value={groups.value} set={(to) => (groups.value = to)} hint={text("teams.namesHint")} />
    </FormDialog>
  );
}

/** The teams that the caller may see. */
export function Teams() {
  return (
    <KindPage<Team>
      path={path} resource="teams" words={words} command="kubectl get teams --watch" newLabel="teams.new" isOff={(team) => team.spec.disabled ?? false}
      create={(close, created) => <NewTeamDialog close={close} created={() => created()} />}
      details={(team, close, changed) => <TeamDetails key={team.metadata.uid} team={team} close={close} changed={changed} />}
    />
  );
}
