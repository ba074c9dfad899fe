import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ask, group, send, signedIn, Refusal } from "../api";
import { person, type Self } from "../person";
import { readRights } from "../rights";
import { text } from "../texts";
import { Problem, asRefusal } from "./problem";

const client = { client_id: "platform-cli" };

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Signs a user in with a password, and returns the access key of the sign-in. */
async function keyFor(username: string, password: string): Promise<string> {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
  const challenge = base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
  const { code } = await ask<{ code: string }>("/auth/password/login", {
    method: "POST", probing: true,
    body: JSON.stringify({ ...client, code_challenge: challenge, code_challenge_method: "S256", username, password }),
  });
  const made = await ask<{ access_token: string }>("/auth/token", {
    method: "POST", probing: true, mediaType: "application/x-www-form-urlencoded",
    body: new URLSearchParams({
      ...client, grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: "urn:ietf:wg:oauth:2.0:oob",
    }).toString(),
  });
  return made.access_token;
}

/** The form with which somebody signs in, by an access key or by a password. */
export function SignIn({ again }: { again?: boolean }) {
  const problem = useSignal<Refusal | null>(null);
  const busy = useSignal(false);
  const offered = useSignal(false);
  const byPassword = useSignal(false);
  useEffect(() => {
    ask<{ methods: { password: { enabled: boolean } } }>("/auth/info", { probing: true }).then(
      (info) => (offered.value = info.methods.password.enabled),
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
      await send("/auth/session", { method: "POST", headers: { Authorization: `Bearer ${key}` }, probing: true });
      field(password ? "password" : "key").value = "";
      try {
        person.value = await whoami();
      } catch (failure) {
        throw asRefusal(failure).code === 401 ? new Refusal(401, text("notSignedIn")) : failure;
      }
      await readRights();
      signedIn();
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
      <p>{text(again ? "signInAgain" : byPassword.value ? "signInPasswordLead" : "signInLead")}</p>
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
