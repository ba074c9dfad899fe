import { render } from "preact";
import { useEffect } from "preact/hooks";
import { effect, signal } from "@preact/signals";
import { send, session } from "./api";
import { Keys } from "./pages/keys";
import { Dialog } from "./parts/dialog";
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

async function signOut() {
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
      <span class="room" />
      <label class="inline">
        <span class="hidden">{text("theme")}</span>
        <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value)}>
          {themes.map((name) => <option value={name}>{text(label[name])}</option>)}
        </select>
      </label>
      {who && session.value !== "out" && (
        <>
          <span class="who" title={(who.groups ?? []).join("\n")}>{text("signedInAs", { name: nameOf(who) })}</span>
          <button type="button" onClick={signOut}>{text("signOut")}</button>
        </>
      )}
    </header>
  );
}

function App() {
  useEffect(() => {
    whoami().then(
      (self) => {
        person.value = self;
        session.value = "in";
      },
      () => (session.value = "out"),
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
        {(state === "in" || state === "ended") && <Keys />}
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
