import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ask, group, home, send, session, startSession, Refusal } from "../api";
import { useSecret } from "../branding";
import { person, type Self } from "../person";
import { readRights } from "../rights";
import { text } from "../texts";
import { Problem, asRefusal } from "./problem";

const client = { client_id: "platform-cli" };

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function randomString(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** Returns the code challenge of a code verifier. Source: RFC 7636. */
async function challengeOf(verifier: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

/** Exchanges an authorization code for the access key of the sign-in. Source: RFC 6749, 4.1.3. */
async function exchange(code: string, verifier: string, redirect: string): Promise<string> {
  const response = await ask<{ access_token: string }>("/auth/token", {
    method: "POST", probing: true, mediaType: "application/x-www-form-urlencoded",
    body: new URLSearchParams({ ...client, grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: redirect }).toString(),
  });
  return response.access_token;
}

/** A connector at which people sign in. */
interface Connector {
  id: string;
  displayName: string;
  issuer: string;
  loginEndpoint: string;
}

/** The redirect URI of the console. It is the same wherever the console is served. */
const redirectURI = `${location.origin}/console`;

/** The key in the session storage of the sign-in that is under way in this tab. */
const pendingItem = "signin";

/** Tells the other tabs of the console that there is a session, with an empty message, or that somebody has signed out: "out". */
const tabs = new BroadcastChannel("session");

/** Reads the caller and the permissions, and repeats the requests that wait for a session. */
async function resumeSession(): Promise<void> {
  [person.value] = await Promise.all([readSelf(), readRights()]);
  startSession();
}

tabs.onmessage = ({ data }) => {
  if (session.value !== "in" && session.value !== "ended") return;
  if (data !== "out") void resumeSession().catch(() => undefined);
  // A page with something that was typed stays, behind the sign-in. All others show nothing any more.
  else session.value = document.querySelector("dialog form") || !dispatchEvent(new Event("beforeunload", { cancelable: true })) ? "ended" : "out";
};

/** Tells the other tabs that somebody has signed out. */
export function announceSignOut(): void {
  tabs.postMessage("out");
}

/** Opens the session of the browser with an access key. */
async function openSession(key: string): Promise<void> {
  await send("/auth/session", { method: "POST", headers: { Authorization: `Bearer ${key}` }, probing: true });
  tabs.postMessage("");
}

/** Sends the browser to the login endpoint of a connector. The state and the code verifier stay in this tab. */
async function startLogin(connector: Connector) {
  const [state, verifier] = [randomString(), randomString()];
  sessionStorage.setItem(pendingItem, JSON.stringify({ state, verifier, issuer: connector.issuer, page: location.pathname + location.search }));
  const query = new URLSearchParams({
    ...client, response_type: "code", redirect_uri: redirectURI, state, code_challenge: await challengeOf(verifier), code_challenge_method: "S256",
  });
  location.assign(`${connector.loginEndpoint}?${query}`);
}

/** Opens the session when the browser returns from a connector. The response is removed from the address first. It counts only if this tab has sent the request. Source: RFC 9207. */
export async function finishLogin(): Promise<void> {
  const response = new URLSearchParams(location.search);
  if (!response.has("state") || !response.has("iss")) return;
  const pending = JSON.parse(sessionStorage.getItem(pendingItem) ?? "null") as { state: string; verifier: string; issuer: string; page: string } | null;
  sessionStorage.removeItem(pendingItem);
  history.replaceState(null, "", location.pathname);
  if (!pending || pending.state !== response.get("state") || pending.issuer !== response.get("iss")) throw new Refusal(400, text("signin.foreign"));
  const code = response.get("code");
  if (!code) throw new Refusal(403, text("signin.denied"));
  await openSession(await exchange(code, pending.verifier, redirectURI));
  if (pending.page !== location.pathname && new URL(pending.page, redirectURI).origin === location.origin) location.replace(pending.page);
}

/** Signs a user in with a password, and returns the access key. */
async function loginWithPassword(username: string, password: string): Promise<string> {
  const verifier = randomString();
  const challenge = await challengeOf(verifier);
  const { code } = await ask<{ code: string }>("/auth/password/login", {
    method: "POST", probing: true,
    body: JSON.stringify({ ...client, code_challenge: challenge, code_challenge_method: "S256", username, password }),
  });
  return exchange(code, verifier, "urn:ietf:wg:oauth:2.0:oob");
}

/** The form of the sign-in with an access key, a password or a connector. */
export function SignIn({ renewal, refusal }: { renewal?: boolean; refusal?: Refusal | null }) {
  useSecret();
  const problem = useSignal<Refusal | null>(refusal ?? null);
  const connectors = useSignal<Connector[]>([]);
  const busy = useSignal(false);
  const passwordOffered = useSignal(false);
  const withPassword = useSignal(false);
  useEffect(() => {
    ask<{ methods: { password: { enabled: boolean }; sso: Connector[] } }>("/auth/info", { probing: true }).then(
      ({ methods }) => {
        passwordOffered.value = methods.password.enabled;
        // Leaving the page would lose what is typed, so connectors are offered in another tab.
        if (!renewal) connectors.value = methods.sso.filter(({ issuer }) => issuer === location.origin);
      },
      () => undefined,
    );
  }, []);
  async function submit(event: Event) {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const field = (name: string) => form.elements.namedItem(name) as HTMLInputElement;
    const password = withPassword.value;
    busy.value = true;
    problem.value = null;
    try {
      const key = password ? await loginWithPassword(field("username").value.trim(), field("password").value) : field("key").value.trim();
      await openSession(key);
      field(password ? "password" : "key").value = "";
      try {
        await resumeSession();
      } catch (failure) {
        throw asRefusal(failure).code === 401 ? new Refusal(401, text("signin.notKept")) : failure;
      }
    } catch (failure) {
      const refusal = asRefusal(failure);
      problem.value = refusal.code === 401 && !password && refusal.message !== text("signin.notKept")
        ? new Refusal(401, text("signin.keyRefused", { message: refusal.message })) : refusal;
    } finally {
      busy.value = false;
    }
  }
  return (
    <form class="signin" onSubmit={submit}>
      {connectors.value.map((connector, i) => (
        <button key={connector.id} type="button" class={i === 0 ? "primary" : undefined} disabled={busy.value} onClick={() => { busy.value = true; void startLogin(connector); }}>
          {text("signin.useConnector", { name: connector.displayName })}
        </button>
      ))}
      {connectors.value.length > 0 && <p class="or">{text("signin.or")}</p>}
      <p>{text(renewal ? session.value === "ended" ? "signin.ended" : "signin.early" : withPassword.value ? "signin.passwordLead" : "signin.lead")}</p>
      <Problem refusal={problem.value} />
      {withPassword.value ? (
        <>
          <label>
            {text("signin.userName")}
            <input key="username" name="username" type="text" autocomplete="username" required spellcheck={false} autofocus />
          </label>
          <label>
            {text("signin.password")}
            <input key="password" name="password" type="password" autocomplete="current-password" required />
          </label>
        </>
      ) : (
        <>
          <input key="unseen" class="unseen" type="text" name="username" autocomplete="username" value="access-key" tabIndex={-1} aria-hidden="true" readOnly />
          <label>
            {text("signin.accessKey")}
            <input key="key" name="key" type="password" autocomplete="current-password" required spellcheck={false} autofocus />
          </label>
        </>
      )}
      <button class={connectors.value.length > 0 ? undefined : "primary"} disabled={busy.value}>{text("signin.title")}</button>
      {passwordOffered.value && (
        <button type="button" disabled={busy.value} onClick={() => { withPassword.value = !withPassword.value; problem.value = null; }}>
          {text(withPassword.value ? "signin.useAccessKey" : "signin.usePassword")}
        </button>
      )}
      {!renewal && !withPassword.value && (
        <details>
          <summary>{text("signin.where")}</summary>
          <p>{text("signin.whereLead")}</p>
        </details>
      )}
      {renewal && <p><a href={`${home}/home?signin`} target="_blank" rel="noopener">{text("signin.tab")}</a></p>}
    </form>
  );
}

/** Reads the caller of the session. */
export async function readSelf(): Promise<Self> {
  const answer = await ask<{ status: Self }>(`${group}/selves`, {
    method: "POST", probing: true, body: JSON.stringify({ apiVersion: "management.platform.sh/v1", kind: "Self" }),
  });
  return answer.status;
}
