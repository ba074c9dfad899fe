import { useSignal } from "@preact/signals";
import { ask, group, send, signedIn, Refusal } from "../api";
import { person, type Self } from "../person";
import { text } from "../texts";
import { Problem, asRefusal } from "./problem";

/** The form with which somebody signs in by an access key. */
export function SignIn({ again }: { again?: boolean }) {
  const problem = useSignal<Refusal | null>(null);
  const busy = useSignal(false);
  async function submit(event: Event) {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const field = form.elements.namedItem("key") as HTMLInputElement;
    const key = field.value.trim();
    busy.value = true;
    problem.value = null;
    try {
      await send("/auth/session", { method: "POST", headers: { Authorization: `Bearer ${key}` }, probing: true });
      field.value = "";
      try {
        person.value = await whoami();
      } catch (failure) {
        throw asRefusal(failure).code === 401 ? new Refusal(401, text("notSignedIn")) : failure;
      }
      signedIn();
    } catch (failure) {
      const refusal = asRefusal(failure);
      problem.value = refusal.code === 401 && refusal.message !== text("notSignedIn")
        ? new Refusal(401, text("keyRefused", { message: refusal.message })) : refusal;
    } finally {
      busy.value = false;
    }
  }
  return (
    <form class="signin" onSubmit={submit}>
      <p>{text(again ? "signInAgain" : "signInLead")}</p>
      <Problem of={problem.value} />
      <input class="unseen" type="text" name="username" autocomplete="username" value="access-key" tabIndex={-1} aria-hidden="true" readOnly />
      <label>
        {text("accessKey")}
        <input name="key" type="password" autocomplete="current-password" required spellcheck={false} autofocus />
      </label>
      <button class="primary" disabled={busy.value}>{text("signIn")}</button>
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
