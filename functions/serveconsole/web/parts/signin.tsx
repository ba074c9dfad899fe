import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ask, group, home, send, session, signedIn, Refusal } from "../api";
import { useSecret } from "../look";
import { person, type Self } from "../person";
import { readRights } from "../rights";
import { text } from "../texts";
import { Problem, asRefusal } from "./problem";

const client = { client_id: "platform-cli" };

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** The challenge of a verifier. */
async function challengeOf(verifier: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

/** Exchanges the code of a sign-in for its access key. */
async function exchange(code: string, verifier: string, redirect: string): Promise<string> {
  const made = await ask<{ access_token: string }>("/auth/token", {
    method: "POST", probing: true, mediaType: "application/x-www-form-urlencoded",
    body: new URLSearchParams({ ...client, grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: redirect }).toString(),
  });
  return made.access_token;
}

/** A connector at which people sign in. */
interface Connector {
  id: string;
  displayName: string;
  issuer: string;
  loginEndpoint: string;
}

/** Where the browser comes back from a connector, wherever the console is served. */
const back = `${location.origin}/console`;

/** The item of the session storage about a sign-in that leaves this page. */
const left = "signin";

/** Tells the other tabs of the console that there is a session. Nothing about it is said. */
const tabs = new BroadcastChannel("session");

/** Reads who is signed in, and goes on with what waits for a session. */
async function goOn(): Promise<void> {
  [person.value] = await Promise.all([whoami(), readRights()]);
  signedIn();
}

tabs.onmessage = () => {
  if (session.value === "in" || session.value === "ended") void goOn().catch(() => undefined);
};

/** Opens the session of the browser with an access key. */
async function begin(key: string): Promise<void> {
  await send("/auth/session", { method: "POST", headers: { Authorization: `Bearer ${key}` }, probing: true });
  tabs.postMessage("");
}

/** Leaves for a connector. What proves that this tab has asked stays in the tab. */
async function leave(to: Connector) {
  const [state, verifier] = [random(), random()];
  sessionStorage.setItem(left, JSON.stringify({ state, verifier, issuer: to.issuer, page: location.pathname + location.search }));
  const query = new URLSearchParams({
    ...client, response_type: "code", redirect_uri: back, state, code_challenge: await challengeOf(verifier), code_challenge_method: "S256",
  });
  location.assign(`${to.loginEndpoint}?${query}`);
}

/** Opens the session if the browser comes back from a connector. The answer is taken from the address first, and only that to a request of this tab counts. */
export async function comeBack(): Promise<void> {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("state") || !answer.has("iss")) return;
  const asked = JSON.parse(sessionStorage.getItem(left) ?? "null") as { state: string; verifier: string; issuer: string; page: string } | null;
  sessionStorage.removeItem(left);
  history.replaceState(null, "", location.pathname);
  if (!asked || asked.state !== answer.get("state") || asked.issuer !== answer.get("iss")) throw new Refusal(400, text("signInForeign"));
  const code = answer.get("code");
  if (!code) throw new Refusal(403, text("signInDenied"));
  await begin(await exchange(code, asked.verifier, back));
  if (asked.page !== location.pathname && new URL(asked.page, back).origin === location.origin) location.replace(asked.page);
}

/** Signs a user in with a password, and returns the access key of the sign-in. */
async function keyFor(username: string, password: string): Promise<string> {
  const verifier = random();
  const challenge = await challengeOf(verifier);
  const { code } = await ask<{ code: string }>("/auth/password/login", {
    method: "POST", probing: true,
    body: JSON.stringify({ ...client, code_challenge: challenge, code_challenge_method: "S256", username, password }),
  });
  return exchange(code, verifier, "urn:ietf:wg:oauth:2.0:oob");
}

/** The form with which somebody signs in, by an access key or by a password. */
export function SignIn({ again, refused }: { again?: boolean; refused?: Refusal | null }) {
  useSecret();
  const problem = useSignal<Refusal | null>(refused ?? null);
  const connectors = useSignal<Connector[]>([]);
  const busy = useSignal(false);
  const offered = useSignal(false);
  const byPassword = useSignal(false);
  useEffect(() => {
    ask<{ methods: { password: { enabled: boolean }; sso: Connector[] } }>("/auth/info", { probing: true }).then(
      ({ methods }) => {
        offered.value = methods.password.enabled;
        // Leaving the page would lose what somebody has typed: then connectors are in another tab.
        if (!again) connectors.value = methods.sso.filter(({ issuer }) => issuer === location.origin);
      },
      () => undefined,
    );
  }, []);
  async function submit(event: Event) {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const field = (name: string) => form.elements.namedItem(name) as HTMLInputElement;
    const password = byPassword.value;
    busy.value = true;
    problem.value = null;
    try {
      const key = password ? await keyFor(field("username").value.trim(), field("password").value) : field("key").value.trim();
      await begin(key);
      field(password ? "password" : "key").value = "";
      try {
        await goOn();
      } catch (failure) {
        throw asRefusal(failure).code === 401 ? new Refusal(401, text("notSignedIn")) : failure;
      }
    } catch (failure) {
      const refusal = asRefusal(failure);
      problem.value = refusal.code === 401 && !password && refusal.message !== text("notSignedIn")
        ? new Refusal(401, text("keyRefused", { message: refusal.message })) : refusal;
    } finally {
      busy.value = false;
    }
  }
  return (
    <form class="signin" onSubmit={submit}>
      <p>{text(again ? session.value === "ended" ? "signInAgain" : "signInEarly" : byPassword.value ? "signInPasswordLead" : "signInLead")}</p>
      <Problem of={problem.value} />
      {byPassword.value ? (
        <>
          <label>
            {text("userName")}
            <input key="username" name="username" type="text" autocomplete="username" required spellcheck={false} autofocus />
          </label>
          <label>
            {text("password")}
            <input key="password" name="password" type="password" autocomplete="current-password" required />
          </label>
        </>
      ) : (
        <>
          <input key="unseen" class="unseen" type="text" name="username" autocomplete="username" value="access-key" tabIndex={-1} aria-hidden="true" readOnly />
          <label>
            {text("accessKey")}
            <input key="key" name="key" type="password" autocomplete="current-password" required spellcheck={false} autofocus />
          </label>
        </>
      )}
      <button class="primary" disabled={busy.value}>{text("signIn")}</button>
      {offered.value && (
        <button type="button" disabled={busy.value} onClick={() => { byPassword.value = !byPassword.value; problem.value = null; }}>
          {text(byPassword.value ? "useAccessKey" : "usePassword")}
        </button>
      )}
      {connectors.value.map((one) => (
        <button key={one.id} type="button" disabled={busy.value} onClick={() => { busy.value = true; void leave(one); }}>
          {text("useConnector", { name: one.displayName })}
        </button>
      ))}
      {again && <p><a href={`${home}/home?signin`} target="_blank" rel="noopener">{text("signInTab")}</a></p>}
    </form>
  );
}

/** Asks the API who the session acts as. */
export async function whoami(): Promise<Self> {
  const answer = await ask<{ status: Self }>(`${group}/selves`, {
    method: "POST", probing: true, body: JSON.stringify({ apiVersion: "management.platform.sh/v1", kind: "Self" }),
  });
  return answer.status;
}
