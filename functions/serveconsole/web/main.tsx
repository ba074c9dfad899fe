import { render, type ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { effect, signal, useSignal } from "@preact/signals";
import { Refusal, group, home, send, session } from "./api";
import { Keys } from "./pages/keys";
import { Dialog } from "./parts/dialog";
import { Problem } from "./parts/problem";
import { SignIn, whoami } from "./parts/signin";
import { nameOf, person } from "./person";
import { text } from "./texts";

const themes = ["system", "light", "dark"] as const;
const theme = signal(localStorage.getItem("theme") ?? "system");
effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") {
    root.removeAttribute("data-theme");
    localStorage.removeItem("theme");
  } else {
    root.setAttribute("data-theme", theme.value);
    localStorage.setItem("theme", theme.value);
  }
});

/** The pages, by the end of their path. */
const pages = [["keys", "keys"], ["studio", "studio"]] as const;
const page = location.pathname.slice(home.length + 1) === "studio" ? "studio" : "keys";

async function signOut() {
  const who = person.value;
  // The key of a sign-in is for this session. Others are used elsewhere as well.
  if (who?.accessKey && who.accessKeyType === "Login") {
    await send(`${group}/ownedaccesskeys/${encodeURIComponent(who.accessKey)}`, { method: "DELETE", probing: true }).catch(() => undefined);
  }
  await send("/auth/session", { method: "DELETE" }).catch(() => undefined);
  location.reload();
}

function Bar() {
  const who = person.value;
  const label = { system: "themeSystem", light: "themeLight", dark: "themeDark" } as const;
  return (
    <header>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>{text("skip")}</a>
      <strong class="brand"><span class="mark" aria-hidden="true" />{text("product")}</strong>
      <nav aria-label={text("navigation")}>
        {pages.map(([name, label]) => <a href={`${home}/${name}`} aria-current={page === name ? "page" : undefined}>{text(label)}</a>)}
      </nav>
      <span class="room" />
      <label class="inline">
        <span class="hidden">{text("theme")}</span>
        <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value)}>
          {themes.map((name) => <option value={name}>{text(label[name])}</option>)}
        </select>
      </label>
      {session.value === "guest" && <a href={`${home}/keys`}>{text("signIn")}</a>}
      {who && session.value !== "out" && session.value !== "guest" && (
        <>
          <span class="who" title={(who.groups ?? []).join("\n")}>{text("signedInAs", { name: nameOf(who) })}</span>
          <button type="button" onClick={signOut}>{text("signOut")}</button>
        </>
      )}
    </header>
  );
}

/** Whether the studio needs no session here: then an evaluation of nothing is refused for what it lacks. */
async function open(): Promise<boolean> {
  if (page !== "studio") return false;
  try {
    await send(`${group}/syncpatchevaluations`, { method: "POST", body: "{}", probing: true });
  } catch (failure) {
    return failure instanceof Refusal && (failure.code === 400 || failure.code === 422);
  }
  return true;
}

/** The studio is large, and loaded by those who open it. A page of an earlier version asks for a script that is gone: it is loaded again, once. */
function StudioPage() {
  const found = useSignal<ComponentType | null>(null);
  const failed = useSignal(false);
  useEffect(() => {
    import("./pages/studio").then(
      ({ Studio }) => {
        if (history.state?.reloaded) history.replaceState(null, "");
        found.value = Studio;
      },
      () => {
        if (history.state?.reloaded) failed.value = true;
        else {
          history.replaceState({ reloaded: true }, "");
          location.reload();
        }
      },
    );
  }, []);
  if (failed.value) return <Problem of={new Refusal(0, "")} />;
  const Page = found.value;
  return Page ? <Page /> : <p class="quiet" role="status">{text("loading")}</p>;
}

function App() {
  useEffect(() => {
    whoami().then(
      (self) => {
        person.value = self;
        session.value = "in";
      },
      async () => (session.value = (await open()) ? "guest" : "out"),
    );
  }, []);
  const state = session.value;
  return (
    <>
      <Bar />
      <main id="content" tabIndex={-1}>
        {state === "unknown" && <p class="quiet" role="status">{text("loading")}</p>}
        {state === "out" && (
          <div class="card narrow">
            <h1>{text("signIn")}</h1>
            <SignIn />
          </div>
        )}
        {(state === "in" || state === "ended") && page === "keys" && <Keys />}
        {(state === "in" || state === "ended" || state === "guest") && page === "studio" && <StudioPage />}
      </main>
      {state === "ended" && (
        <Dialog title={text("signIn")}>
          <SignIn again />
        </Dialog>
      )}
    </>
  );
}

const root = document.getElementById("app");
if (root) render(<App />, root);
