import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { OwnerName } from "../parts/ownername";
import { ScopeWords } from "../parts/scopewords";
import {
  ask, asRefusal, displayNameOf, Fact, formatDistance, group, home, type Key, type KeyChildren, may, person, Problem, readChildren, Refusal, send, session, type Self, text, Time, useSecret,
} from "../shared";
import { claimsOf } from "../tokens/claims";

/** The longest text that is sent, in UTF-16 code units. Access keys and tokens are shorter. */
const longestText = 16_384;

/** How many keys are listed that were made with a key. */
const listedKeys = 20;

/** What is known of a credential. */
interface Finding {
  /** Who an access key acts as. Absent: the platform does not accept the text as an access key. */
  self?: Self;
  /** Why the platform does not accept it. */
  refusal?: string;
  /** The claims of a token, as the token itself says them. Nobody has verified them. */
  claims?: Record<string, unknown>;
  /** The object of the key, and what was made with it. Absent: the caller may not see it. */
  key?: Key;
  children?: KeyChildren;
}

/** Asks whose access key a text is. The question is no use of the key. Throws a Refusal if the platform cannot answer. */
async function inspect(credential: string): Promise<Finding> {
  const claims = claimsOf(credential) ?? undefined;
  let self: Self;
  try {
    const body = JSON.stringify({ apiVersion: "management.platform.sh/v1", kind: "Self", spec: { accessKey: credential } });
    self = (await ask<{ status: Self }>(`${group}/selves`, { method: "POST", probing: true, body })).status;
  } catch (failure) {
    const refusal = asRefusal(failure);
    if (refusal.code !== 401) throw refusal;
    return { refusal: refusal.message, claims };
  }
  const finding: Finding = { self };
  if (!self.accessKey || !may("get", "ownedaccesskeys")) return finding;
  try {
    finding.key = await ask<Key>(`${group}/ownedaccesskeys/${encodeURIComponent(self.accessKey)}`);
    finding.children = await readChildren(finding.key.metadata.uid);
  } catch (failure) {
    // Others' keys do not exist for the caller.
    const { code } = asRefusal(failure);
    if (code !== 403 && code !== 404) throw failure;
  }
  return finding;
}

/** The keys and the number of tokens that were made with a key. Each key is a link. */
function MadeWithKey({ keys, tokens }: KeyChildren["all"]) {
  if (keys.length + tokens === 0) return <p>{text("state.nothing")}</p>;
  return (
    <ul>
      {keys.length > 0 && (
        <li>
          {text(keys.length === 1 ? "count.key" : "count.keys", { count: keys.length })}:{" "}
          {keys.slice(0, listedKeys).map((name, i) => <>{i > 0 && ", "}<KeyLink name={name} /></>)}{keys.length > listedKeys && " …"}
        </li>
      )}
      {tokens > 0 && <li>{text(tokens === 1 ? "count.token" : "count.tokens", { count: tokens })}</li>}
    </ul>
  );
}

function KeyLink({ name }: { name: string }) {
  return <a href={`${home}/keys?${new URLSearchParams({ name })}`}>{name}</a>;
}

/** Says what has become of a credential that was ended. Finding is what was known of it before. Null: nothing. */
function endedText(finding: Finding | null): string {
  if (!finding) return text("found.ended");
  const { self, claims } = finding;
  if (!self) return text(claims ? "found.endedToken" : "found.endedBefore");
  return text("found.endedKey", { name: self.accessKey ?? "", owner: displayNameOf(self) });
}

/** Who the credential is of, what it may do, what it did, and what ends with it. */
function FindingCard({ finding }: { finding: Finding }) {
  const { self, refusal, claims, key, children } = finding;
  if (!self) {
    return (
      <>
        <p>{text(claims ? "found.isToken" : "found.unknown")}</p>
        {claims ? (
          <dl>
            <Fact name={text("claim.sub")}>{String(claims.sub ?? "")}</Fact>
            {typeof claims.exp === "number" && <Fact name={text("field.expires")}><Time instant={new Date(claims.exp * 1000).toISOString()} none="" /></Fact>}
          </dl>
        ) : <p class="quiet">{text("found.refused", { message: refusal ?? "" })}</p>}
      </>
    );
  }
  const { accessKey = "" } = self;
  const staying = (children?.all.keys ?? []).filter((name) => !children?.bound.keys.includes(name));
  return (
    <>
      {person.value?.accessKey === accessKey && <p class="problem">{text("found.own")}</p>}
      <dl>
        <Fact name={text("field.owner")}><OwnerName user={self.user?.name} displayName={self.user?.displayName} team={self.team?.name} subject={self.subject} /></Fact>
        <Fact name={text("signin.accessKey")}>
          {key ? <KeyLink name={accessKey} /> : accessKey}
        </Fact>
        {key?.spec.displayName && <Fact name={text("field.displayName")}>{key.spec.displayName}</Fact>}
        <Fact name={text("field.type")}>{self.accessKeyType}</Fact>
        <Fact name={text("field.expires")}><Time instant={self.accessKeyExpirationTimestamp} none={text("state.neverExpires")} /></Fact>
        {key && <Fact name={text("keys.lastUsed")}>{key.status?.lastActivity ? formatDistance(key.status.lastActivity) : text("state.neverUsed")}</Fact>}
        <Fact name={text("scope.title")}>{self.accessKeyScope ? <ScopeWords scope={self.accessKeyScope} /> : text("scope.unlimited")}</Fact>
      </dl>
      {!key && <p class="quiet">{text("found.hidden")}</p>}
      {may("list", "auditevents") && <p><a href={`${home}/audit?${new URLSearchParams({ key: accessKey })}`}>{text("found.events")}</a></p>}
      {children && (
        <>
          <h3>{text("found.ends")}</h3>
          <MadeWithKey {...children.bound} />
          {staying.length > 0 && (
            <>
              <h3>{text("found.stays")}</h3>
              <MadeWithKey keys={staying} tokens={0} />
              <p class="quiet">{text("found.staysHint")}</p>
            </>
          )}
        </>
      )}
    </>
  );
}

/** The page for somebody who has found a credential: whose it is, as far as they may know it, and a button that ends it. Ending needs no session. */
export function FoundKey() {
  useSecret();
  const credential = useSignal("");
  const finding = useSignal<Finding | null>(null);
  const problem = useSignal<Refusal | null>(null);
  const busy = useSignal(false);
  const ended = useSignal("");
  /** What is wrong with the text itself. */
  const mistake = useSignal<"found.empty" | "found.tooLong" | null>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => { document.title = `${text("page.found")} · ${text("app.product")}`; }, []);
  useEffect(() => input.current?.focus(), []);
  async function run(action: (credential: string) => unknown) {
    const typed = credential.value.trim();
    finding.value = null;
    ended.value = "";
    problem.value = null;
    mistake.value = typed === "" ? "found.empty" : typed.length > longestText ? "found.tooLong" : null;
    if (mistake.value) {
      input.current?.focus();
      return;
    }
    busy.value = true;
    try {
      await action(typed);
    } catch (failure) {
      problem.value = asRefusal(failure);
    } finally {
      busy.value = false;
    }
  }
  const look = () => run(async (typed) => { finding.value = await inspect(typed); });
  const end = () => run(async (typed) => {
    // What is to be ended is ended, also if nobody can say whose it is.
    const known = session.value === "in" ? await inspect(typed).catch(() => null) : null;
    const body = JSON.stringify({ apiVersion: "management.platform.sh/v1", kind: "CredentialRevocation", spec: { credentials: [typed] } });
    await send(`${group}/credentialrevocations`, { method: "POST", probing: true, body });
    ended.value = endedText(known);
    credential.value = "";
  });
  const signedIn = session.value === "in" || session.value === "ended";
  return (
    <>
      <h1>{text("page.found")}</h1>
      <p class="quiet">{text("found.lead")}</p>
      <form class="card found" onSubmit={(event) => { event.preventDefault(); void (signedIn ? look() : end()); }}>
        <div class="field">
          <label for="found-credential">{text("found.credential")}</label>
          <input
            ref={input} id="found-credential" type="password" autocomplete="off" spellcheck={false} value={credential.value}
            aria-invalid={mistake.value !== null} aria-describedby="found-mistake"
            onInput={(event) => { credential.value = event.currentTarget.value; finding.value = mistake.value = null; }}
          />
          <div id="found-mistake" class="wrong">{mistake.value && <p>{text(mistake.value)}</p>}</div>
        </div>
        <Problem refusal={problem.value} />
        <div aria-live="polite">
          {ended.value && <p class="decision yes">{ended.value}</p>}
          {finding.value && <FindingCard finding={finding.value} />}
        </div>
        <div class="buttons">
          {signedIn && <button class="primary" disabled={busy.value}>{text("found.look")}</button>}
          <button type={signedIn ? "button" : "submit"} class="danger" disabled={busy.value} onClick={signedIn ? () => void end() : undefined}>{text("found.end")}</button>
        </div>
        {!signedIn && <p class="quiet">{text("found.signIn")} <a href={`${home}/home`}>{text("signin.title")}</a></p>}
      </form>
    </>
  );
}
