import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Kind } from "../parts/kind";
import {
  asRefusal, DetailsDialog, Dialog, distance, Fact, fieldsOf, FormDialog, group, home, type Key, list, may, type Meta, person, Problem,
  quoted, Remove, text, Time, usePermitted, useSecret, useWrite, type Words,
} from "../shared";

/** A user, as far as the console reads it. */
interface User {
  metadata: Meta;
  spec: {
    displayName?: string; username?: string; email?: string; connector?: string; subject?: string; groups?: string[]; ssoGroups?: string[];
    clusterRoles?: { name: string }[]; disabled?: boolean;
  };
  status: { teams?: string[]; hasPassword?: boolean };
}

const path = `${group}/users`;
const adminRole = "platform-admin";
const words: Words = {
  title: "people", lead: "peopleLead", count: "entries", countOne: "entriesOne", countFiltered: "entriesFiltered", empty: "peopleEmpty",
};

/** The keys of a user that work now, and when the last of them was used. */
interface Credentials {
  keys: number;
  tokens: number;
  more: boolean;
  used?: string;
}

async function credentialsOf(user: string): Promise<Credentials> {
  const limit = "500";
  const [table, tokens] = await Promise.all([
    list<Key>(`${group}/ownedaccesskeys`, { fieldSelector: `spec.user=${user}`, limit }),
    may("list", "directclusterendpointtokens") ? list<{ metadata: Meta }>(`${group}/directclusterendpointtokens`, { fieldSelector: `status.user=${user}`, limit }) : { rows: [] },
  ]);
  const keys = (table.rows ?? []).map((row) => row.object).filter((key) => !key.spec.disabled);
  const used = keys.map((key) => key.status?.lastActivity ?? "").sort().at(-1);
  return { keys: keys.length, tokens: tokens.rows?.length ?? 0, more: Boolean(table.metadata?.continue), used: used || undefined };
}

function Keys({ of, user }: { of: Credentials | null; user: string }) {
  if (!of) return <p class="quiet">{text("loading")}</p>;
  if (of.keys + of.tokens === 0) return <p>{text("childrenNone")}</p>;
  return (
    <p>
      <a href={`${home}/keys?${new URLSearchParams({ filter: `user:${user}` })}`}>
        {text(of.more ? "userKeysMore" : of.keys === 1 ? "childrenKeysOne" : "childrenKeys", { count: of.keys })}
      </a>
      {of.tokens > 0 && <>, {text(of.tokens === 1 ? "childrenTokensOne" : "childrenTokens", { count: of.tokens })}</>}{" "}
      {of.used && <span class="quiet">{text("deleteUsed", { when: distance(of.used) })}</span>}
    </p>
  );
}

function Password({ user, own, close, done }: { user: string; own: boolean; close: () => void; done: () => void }) {
  useSecret();
  const write = useWrite(path);
  function submit(form: HTMLFormElement) {
    // A password may begin or end with a blank.
    const field = (name: string) => (form.elements.namedItem(name) as HTMLInputElement | null)?.value;
    const current = field("current");
    void write.post(user, "password", { spec: { ...(current ? { current } : {}), password: field("password") } }, () => {
      form.reset();
      done();
    });
  }
  return (
    <FormDialog title={text("passwordOf", { name: user })} submit={submit} write={write} button="passwordSet" close={close}>
      <p>{text("passwordLead")}</p>
      {own && (
        <label>{text("passwordCurrent")}<input type="password" name="current" autocomplete="current-password" autofocus /></label>
      )}
      <label>{text("passwordNew")}<input type="password" name="password" autocomplete="new-password" required minLength={12} /></label>
    </FormDialog>
  );
}

function One({ user, close, changed }: { user: User; close: () => void; changed: (said?: string) => void }) {
  const { name, resourceVersion, creationTimestamp } = user.metadata;
  const doing = useSignal<"" | "delete" | "disable" | "signout" | "password">("");
  const { problem, patch, post } = useWrite(path);
  const credentials = useSignal<Credentials | null>(null);
  const object = { resource: "users", name };
  const [change, end, out, word] = usePermitted([
    { verb: "update", ...object }, { verb: "delete", ...object }, { verb: "create", subresource: "signout", ...object }, { verb: "create", subresource: "password", ...object },
  ], resourceVersion);
  // Only admins switch a user off and on; users change their own texts.
  const switches = change && may("create", "users");
  // An admin gives a user the first password.
  const first = user.status.hasPassword || may("create", "users");
  useEffect(() => {
    if (may("list", "ownedaccesskeys")) credentialsOf(name).then((found) => (credentials.value = found), (failure) => (problem.value = asRefusal(failure)));
  }, [name, resourceVersion]);
  const own = person.value?.user?.name === name;
  const finish = (outcome: string) => () => {
    doing.value = "";
    changed(outcome);
  };
  const setDisabled = (disabled: boolean) => patch(name, { spec: { disabled } }, finish(text(disabled ? "userDisabled" : "userEnabled", { name })));
  const back = () => { problem.value = null; doing.value = ""; };
  switch (doing.value) {
    case "delete":
      return (
        <Remove path={path} of={user.metadata} close={back} done={() => { close(); changed(text("userDeleted", { name })); }}>
          <p>{text("userDeleteLead")}</p>
          <Keys of={credentials.value} user={name} />
        </Remove>
      );
    case "password":
      return <Password user={name} own={own} close={back} done={() => { back(); changed(text("passwordDone", { name })); }} />;
    case "disable":
    case "signout": {
      const disabling = doing.value === "disable";
      return (
        <Dialog title={text(disabling ? "userDisableTitle" : "signoutTitle", { name })} close={back}>
          <p>{text(disabling ? "userDisableLead" : "signoutLead")}</p>
          {own && <p class="problem">{text("userOwn")}</p>}
          <h3>{text("userKeys")}</h3>
          <Keys of={credentials.value} user={name} />
          <Problem of={problem.value} />
          <div class="buttons">
            <button type="button" onClick={back}>{text("back")}</button>
            <button
              type="button" class="danger"
              onClick={() => void (disabling ? setDisabled(true) : post(name, "signout", {}, finish(text("signoutDone", { name }))))}
            >
              {text(disabling ? "disable" : "signoutDo")}
            </button>
          </div>
        </Dialog>
      );
    }
  }
  const { spec, status } = user;
  return (
    <DetailsDialog
      title={name} close={close} problem={problem.value} command={`kubectl describe user ${quoted(name)}`}
      facts={
        <>
          {spec.displayName && <Fact name={text("displayName")}>{spec.displayName}</Fact>}
          {spec.email && <Fact name={text("email")}>{spec.email}</Fact>}
          <Fact name={text("state")}>{text(spec.disabled ? "disabled" : "enabled")}</Fact>
          <Fact name={text("adminIs")}>{text(spec.clusterRoles?.some((role) => role.name === adminRole) ? "yes" : "no")}</Fact>
          <Fact name={text("teams")}>{(status.teams ?? []).join(", ") || text("noneOf")}</Fact>
          <Fact name={text("claimGroups")}>{[...(spec.groups ?? []), ...(spec.ssoGroups ?? [])].join(", ") || text("noneOf")}</Fact>
          <Fact name={text("signsIn")}>{[spec.connector && text("signsInAt", { connector: spec.connector }), status.hasPassword && text("signsInPassword")].filter(Boolean).join(", ") || text("signsInKey")}</Fact>
          <Fact name={text("created")}><Time of={creationTimestamp} none="" /></Fact>
        </>
      }
      buttons={
        <>
          {end && <button type="button" class="danger quietly" onClick={() => (doing.value = "delete")}>{text("delete")}</button>}
          {out && <button type="button" onClick={() => (doing.value = "signout")}>{text("signoutAsk")}</button>}
          {word && first && <button type="button" onClick={() => (doing.value = "password")}>{text("passwordAsk")}</button>}
          {switches && <button type="button" onClick={() => { if (spec.disabled) void setDisabled(false); else doing.value = "disable"; }}>{text(spec.disabled ? "enable" : "disableAsk")}</button>}
        </>
      }
    >
      {may("list", "ownedaccesskeys") && <><h3>{text("userKeys")}</h3><Keys of={credentials.value} user={name} /></>}
    </DetailsDialog>
  );
}

function Create({ close, made }: { close: () => void; made: (name: string) => void }) {
  const write = useWrite(path);
  function submit(form: HTMLFormElement) {
    const field = fieldsOf(form);
    void write.create({
      apiVersion: "management.platform.sh/v1", kind: "User", metadata: { name: field("name") },
      spec: { displayName: field("display"), email: field("email"), ...(field("admin") ? { clusterRoles: [{ name: adminRole }] } : {}) },
    }, () => made(field("name")));
  }
  return (
    <FormDialog title={text("newUser")} submit={submit} write={write} button="createUser" close={close}>
      <p class="quiet">{text("newUserLead")}</p>
      <label>{text("createName")}<input name="name" required maxLength={253} autocapitalize="off" spellcheck={false} autofocus /></label>
      <label>{text("displayName")}<input name="display" maxLength={256} /></label>
      <label>{text("email")}<input name="email" type="email" maxLength={320} /></label>
      <label class="choice"><input type="checkbox" name="admin" />{text("adminIs")}</label>
    </FormDialog>
  );
}

/** The users that the caller may see. */
export function People() {
  return (
    <Kind<User>
      path={path} resource="users" words={words} command="kubectl get users -o wide --watch" add="newUser" wide={["Groups"]} off={(user) => user.spec.disabled ?? false}
      create={(close, made) => <Create close={close} made={(name) => made(text("userMade", { name }))} />}
      one={(user, close, changed) => <One key={user.metadata.uid} user={user} close={close} changed={changed} />}
    />
  );
}
