import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { adminRole, roles, rolesText } from "../kinds/role";
import { Field, FieldGroup } from "../parts/field";
import { FormDialog } from "../parts/form";
import { KindPage } from "../parts/kindpage";
import { OwnerName } from "../parts/ownername";
import {
  asRefusal, Chip, DetailsDialog, Dialog, formatDistance, Fact, group, home, type Key, list, may, type Meta, person, Problem,
  quoteForShell, DeleteDialog, text, Time, usePermitted, useSecret, useWrite, type ListTexts,
} from "../shared";

/** The fields of a user that the console reads. */
interface User {
  metadata: Meta;
  spec: {
    displayName?: string; username?: string; email?: string; connector?: string; subject?: string; groups?: string[]; ssoGroups?: string[];
    clusterRoles?: { name: string }[]; disabled?: boolean;
  };
  status: { teams?: string[]; hasPassword?: boolean };
}

const path = `${group}/users`;
const words: ListTexts = {
  title: "page.people", lead: "people.lead", count: "list.count", countOne: "list.countOne", countFiltered: "list.countFiltered", empty: "people.empty",
};

/** The number of working credentials of a user, and when a key was last used. */
interface Credentials {
  keys: number;
  tokens: number;
  more: boolean;
  used?: string;
}

async function readCredentials(user: string): Promise<Credentials> {
  const limit = "500";
  const [table, tokens] = await Promise.all([
    list<Key>(`${group}/ownedaccesskeys`, { fieldSelector: `spec.user=${user}`, limit }),
    may("list", "directclusterendpointtokens") ? list<{ metadata: Meta }>(`${group}/directclusterendpointtokens`, { fieldSelector: `status.user=${user}`, limit }) : { rows: [] },
  ]);
  const keys = (table.rows ?? []).map((row) => row.object).filter((key) => !key.spec.disabled);
  const used = keys.map((key) => key.status?.lastActivity ?? "").sort().at(-1);
  return { keys: keys.length, tokens: tokens.rows?.length ?? 0, more: Boolean(table.metadata?.continue), used: used || undefined };
}

function CredentialSummary({ credentials, user }: { credentials: Credentials | null; user: string }) {
  if (!credentials) return <p class="quiet">{text("state.loading")}</p>;
  if (credentials.keys + credentials.tokens === 0) return <p>{text("people.noCredentials")}</p>;
  return (
    <p>
      <a href={`${home}/keys?${new URLSearchParams({ filter: `user:${user}` })}`}>
        {text(credentials.more ? "count.keysOrMore" : credentials.keys === 1 ? "count.key" : "count.keys", { count: credentials.keys })}
      </a>
      {credentials.tokens > 0 && <>, {text(credentials.tokens === 1 ? "count.token" : "count.tokens", { count: credentials.tokens })}</>}{" "}
      {credentials.used && <span class="quiet">{text("state.lastUsed", { when: formatDistance(credentials.used) })}</span>}
    </p>
  );
}

function PasswordDialog({ user, isSelf, close, changed }: { user: string; isSelf: boolean; close: () => void; changed: () => void }) {
  useSecret();
  const write = useWrite(path);
  // A password may begin or end with a space: it is not trimmed.
  const current = useSignal("");
  const password = useSignal("");
  const submit = () => write.post(user, "password", { spec: { ...(current.value ? { current: current.value } : {}), password: password.value } }, () => {
    current.value = password.value = "";
    changed();
  });
  return (
    <FormDialog title={text("people.passwordOf", { name: user })} submit={submit} write={write} button="people.passwordSet" close={close}>
      <p>{text("people.passwordLead")}</p>
      {isSelf && (
        <Field label={text("people.passwordCurrent")} path="spec.current" type="password" value={current.value} set={(to) => (current.value = to)} autocomplete="current-password" autofocus />
      )}
      <Field
        label={text("people.passwordNew")} path="spec.password" type="password" value={password.value} set={(to) => (password.value = to)} autocomplete="new-password"
        required minLength={12}
      />
    </FormDialog>
  );
}

function UserDetails({ user, close, changed }: { user: User; close: () => void; changed: (message?: string) => void }) {
  const { name, resourceVersion, creationTimestamp } = user.metadata;
  const dialog = useSignal<"" | "change" | "delete" | "disable" | "signout" | "password">("");
  const { problem, patch, post } = useWrite(path);
  const credentials = useSignal<Credentials | null>(null);
  const object = { resource: "users", name };
  const [mayChange, mayDelete, maySignOut, maySetPassword] = usePermitted([
    { verb: "update", ...object }, { verb: "delete", ...object }, { verb: "create", subresource: "signout", ...object }, { verb: "create", subresource: "password", ...object },
  ], resourceVersion);
  // Only admins enable and disable users. Users may update their own texts.
  const maySwitch = mayChange && may("create", "users");
  // Only an admin sets the first password of a user.
  const hasOrGetsPassword = user.status.hasPassword || may("create", "users");
  useEffect(() => {
    if (may("list", "ownedaccesskeys")) readCredentials(name).then((read) => (credentials.value = read), (failure) => (problem.value = asRefusal(failure)));
  }, [name, resourceVersion]);
  const isSelf = person.value?.user?.name === name;
  const finish = (outcome: string) => () => {
    dialog.value = "";
    changed(outcome);
  };
  const setDisabled = (disabled: boolean) => patch(name, { spec: { disabled } }, finish(text(disabled ? "people.disabled" : "people.enabled", { name })));
  const goBack = () => { problem.value = null; dialog.value = ""; };
  let over = null;
  switch (dialog.value) {
    case "change":
      over = <ChangeUserDialog user={user} close={goBack} saved={finish(text("projects.changed", { name }))} />;
      break;
    case "delete":
      over = (
        <DeleteDialog path={path} object={user.metadata} close={goBack} deleted={() => { close(); changed(text("people.deleted", { name })); }}>
          <p>{text("people.deleteLead")}</p>
          <CredentialSummary credentials={credentials.value} user={name} />
        </DeleteDialog>
      );
      break;
    case "password":
      over = <PasswordDialog user={name} isSelf={isSelf} close={goBack} changed={() => { goBack(); changed(text("people.passwordDone", { name })); }} />;
      break;
    case "disable":
    case "signout": {
      const disabling = dialog.value === "disable";
      over = (
        <Dialog title={text(disabling ? "people.disableTitle" : "people.signOutTitle", { name })} close={goBack}>
          <p>{text(disabling ? "people.disableLead" : "people.signOutLead")}</p>
          {isSelf && <p class="problem">{text("people.own")}</p>}
          <h3>{text("people.credentials")}</h3>
          <CredentialSummary credentials={credentials.value} user={name} />
          <Problem refusal={problem.value} />
          <div class="buttons">
            <button type="button" onClick={goBack}>{text("action.back")}</button>
            <button
              type="button" class="danger"
              onClick={() => void (disabling ? setDisabled(true) : post(name, "signout", {}, finish(text("people.signedOut", { name }))))}
            >
              {text(disabling ? "action.disable" : "people.signOut")}
            </button>
          </div>
        </Dialog>
      );
    }
  }
  const { spec, status } = user;
  return (
    <DetailsDialog
      title={name} close={close} over={over} problem={problem.value} command={`kubectl describe user ${quoteForShell(name)}`} events={{ user: name }}
      facts={
        <>
          {spec.displayName && <Fact name={text("field.displayName")}>{spec.displayName}</Fact>}
          {spec.email && <Fact name={text("field.email")}>{spec.email}</Fact>}
          <Fact name={text("field.state")}><Chip kind={spec.disabled ? "off" : "good"}>{text(spec.disabled ? "state.disabled" : "state.enabled")}</Chip></Fact>
          <Fact name={text("people.roles")}>{rolesText(spec.clusterRoles)}</Fact>
          <Fact name={text("page.teams")}>{(status.teams ?? []).length > 0 ? <span class="names">{status.teams?.map((team) => <OwnerName team={team} />)}</span> : text("state.none")}</Fact>
          <Fact name={text("claim.groups")}>{[...(spec.groups ?? []), ...(spec.ssoGroups ?? [])].join(", ") || text("state.none")}</Fact>
          <Fact name={text("people.signsIn")}>{[spec.connector && text("people.signsInAt", { connector: spec.connector }), status.hasPassword && text("people.signsInPassword")].filter(Boolean).join(", ") || text("people.signsInKey")}</Fact>
          <Fact name={text("field.created")}><Time instant={creationTimestamp} none="" /></Fact>
        </>
      }
      buttons={
        <>
          {mayDelete && <button type="button" class="danger quietly" onClick={() => (dialog.value = "delete")}>{text("action.delete")}</button>}
          {maySignOut && <button type="button" onClick={() => (dialog.value = "signout")}>{text("people.signOutAsk")}</button>}
          {maySetPassword && hasOrGetsPassword && <button type="button" onClick={() => (dialog.value = "password")}>{text("people.passwordAsk")}</button>}
          {mayChange && <button type="button" onClick={() => (dialog.value = "change")}>{text("projects.changeAsk")}</button>}
          {maySwitch && <button type="button" onClick={() => { if (spec.disabled) void setDisabled(false); else dialog.value = "disable"; }}>{text(spec.disabled ? "action.enable" : "people.disableAsk")}</button>}
        </>
      }
    >
      {may("list", "ownedaccesskeys") && <><h3>{text("people.credentials")}</h3><CredentialSummary credentials={credentials.value} user={name} /></>}
    </DetailsDialog>
  );
}

/** The form of a user as they were when it was opened. Users change their own display name; only admins change the other fields. */
function ChangeUserDialog({ user, close, saved }: { user: User; close: () => void; saved: () => void }) {
  // With the resource version that was read, the API refuses to overwrite a concurrent change.
  const { metadata: { name, uid, resourceVersion }, spec } = useMemo(() => user, []);
  const displayName = useSignal(spec.displayName ?? "");
  const email = useSignal(spec.email ?? "");
  const groups = useSignal((spec.groups ?? []).join(" "));
  const clusterRoles = useSignal((spec.clusterRoles ?? []).map((role) => role.name));
  const write = useWrite(path);
  const isAdminForm = may("create", "users");
  function submit() {
    const fields = {
      displayName: displayName.value.trim(),
      ...(isAdminForm ? { email: email.value.trim(), groups: groups.value.split(/[\s,]+/).filter(Boolean), clusterRoles: clusterRoles.value.map((role) => ({ name: role })) } : {}),
    };
    void write.patch(name, { metadata: { uid, resourceVersion }, spec: fields }, saved);
  }
  return (
    <FormDialog title={text("projects.change", { name })} close={close} submit={submit} write={write} button="action.save">
      <Field label={text("field.displayName")} path="spec.displayName" value={displayName.value} set={(to) => (displayName.value = to)} autofocus />
      {isAdminForm && (
        <>
          <Field label={text("field.email")} path="spec.email" value={email.value} set={(to) => (email.value = to)} />
          <Field label={text("claim.groups")} path="spec.groups" value={groups.value} set={(to) => (groups.value = to)} hint={text("teams.namesHint")} />
          <FieldGroup paths={["spec.clusterRoles"]} legend={text("people.roles")}>
            {roles.map(([role, label]) => (
              <label class="choice">
                <input
                  type="checkbox" checked={clusterRoles.value.includes(role)}
                  onChange={({ currentTarget }) => { clusterRoles.value = [...clusterRoles.value.filter((other) => other !== role), ...(currentTarget.checked ? [role] : [])]; }}
                />
                {text(label)}
              </label>
            ))}
          </FieldGroup>
        </>
      )}
    </FormDialog>
  );
}

function NewUserDialog({ close, created }: { close: () => void; created: (name: string) => void }) {
  const name = useSignal("");
  const displayName = useSignal("");
  const email = useSignal("");
  const isNewAdmin = useSignal(false);
  const write = useWrite(path);
  const submit = () => write.create({
    apiVersion: "management.platform.sh/v1", kind: "User", metadata: { name: name.value.trim() },
    spec: { displayName: displayName.value.trim(), email: email.value.trim(), ...(isNewAdmin.value ? { clusterRoles: [{ name: adminRole }] } : {}) },
  }, () => created(name.value.trim()));
  return (
    <FormDialog title={text("people.new")} submit={submit} write={write} button="people.create" close={close}>
      <p class="quiet">{text("people.newLead")}</p>
      <Field label={text("field.name")} path="metadata.name" value={name.value} set={(to) => (name.value = to)} required maxLength={253} autofocus />
      <Field label={text("field.displayName")} path="spec.displayName" value={displayName.value} set={(to) => (displayName.value = to)} maxLength={256} />
      <Field label={text("field.email")} path="spec.email" type="email" value={email.value} set={(to) => (email.value = to)} maxLength={320} />
      <FieldGroup paths={["spec.clusterRoles"]}>
        <label class="choice"><input type="checkbox" checked={isNewAdmin.value} onChange={(event) => (isNewAdmin.value = event.currentTarget.checked)} />{text("people.admin")}</label>
      </FieldGroup>
    </FormDialog>
  );
}

/** The users that the caller may see. */
export function People() {
  return (
    <KindPage<User>
      path={path} resource="users" words={words} command="kubectl get users -o wide --watch" newLabel="people.new" wide={["Groups"]} isOff={(user) => user.spec.disabled ?? false}
      create={(close, created) => <NewUserDialog close={close} created={(name) => created(text("people.created", { name }))} />}
      details={(user, close, changed) => <UserDetails key={user.metadata.uid} user={user} close={close} changed={changed} />}
    />
  );
}
