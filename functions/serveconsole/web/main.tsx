import { render, type ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { effect, signal, useSignal } from "@preact/signals";
import { Refusal, again, group, home, send, session } from "./api";
import { loadStyles, look, plain } from "./look";
import { listsClusters } from "./pages/cluster";
import { Home } from "./pages/home";
import { Keys } from "./pages/keys";
import labels from "./pages.json";
import { Dialog } from "./parts/dialog";
import { Ending } from "./parts/ending";
import { Problem, asRefusal } from "./parts/problem";
import { SignIn, comeBack, whoami } from "./parts/signin";
import { admin, nameOf, person } from "./person";
import { may, readRights } from "./rights";
import { loadTexts, text, type Text } from "./texts";

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

loadStyles();

/** The name of a page: the end of its path. */
type PageName = keyof typeof labels;

/** What shows a page: whether the session may use it, and how it is loaded unless it is part of the first script. */
interface Page {
  needs?: () => boolean;
  here?: ComponentType;
  load?: () => Promise<ComponentType>;
}

const pages: Record<PageName, Page> = {
  home: { here: Home },
  keys: { needs: () => may("list", "ownedaccesskeys"), here: Keys },
  clusters: { needs: listsClusters, load: () => import("./pages/clusters").then((it) => it.Clusters) },
  tokens: { needs: () => may("list", "directclusterendpointtokens"), load: () => import("./pages/tokens").then((it) => it.Tokens) },
  studio: { needs: () => may("create", "syncpatchevaluations"), load: () => import("./pages/studio").then((it) => it.Studio) },
  projects: { needs: () => may("list", "projects"), load: () => import("./pages/projects").then((it) => it.Projects) },
  people: { needs: () => may("list", "users"), load: () => import("./pages/people").then((it) => it.People) },
  teams: { needs: () => may("list", "teams"), load: () => import("./pages/teams").then((it) => it.Teams) },
  trustrules: { needs: () => admin() && may("list", "trustrules"), load: () => import("./pages/trustrules").then((it) => it.TrustRules) },
  audit: { needs: () => may("list", "auditevents"), load: () => import("./pages/audit").then((it) => it.Audit) },
  config: { needs: () => may("get", "configs"), load: () => import("./pages/config").then((it) => it.Configuration) },
};
/** The names of the pages, in the order of the menu. */
const pageNames = Object.keys(labels) as PageName[];
const pageName = pageNames.find((name) => location.pathname.slice(home.length + 1) === name) ?? "home";
const page = pages[pageName];

async function signOut() {
  const who = person.value;
  // The key of a sign-in is for this session. Others are used elsewhere as well.
  if (who?.accessKey && who.accessKeyType === "Login") {
    await send(`${group}/ownedaccesskeys/${encodeURIComponent(who.accessKey)}`, { method: "DELETE", probing: true }).catch(() => undefined);
  }
  await send("/auth/session", { method: "DELETE" }).catch(() => undefined);
  location.reload();
}

/** The name of the console, with the logo of the configuration. A picture that cannot be loaded leaves the built-in look. */
function Brand() {
  const failed = useSignal(false);
  const [logo, small] = failed.value ? [] : [look.logo, look.smallLogo];
  const onError = () => { failed.value = true; };
  if (logo) {
    return (
      <strong class="brand">
        <picture>
          {small && <source media="(width < 48rem)" srcset={small} />}
          <img class="logo" src={logo} alt={text("product")} onError={onError} />
        </picture>
      </strong>
    );
  }
  return (
    <strong class="brand">
      {small ? <img class="mark" src={small} alt="" onError={onError} /> : <span class="mark own" aria-hidden="true" />}
      <span class="product">{text("product")}</span>
    </strong>
  );
}

/** The links that the configuration adds, above or below the content. */
function Links({ top }: { top: boolean }) {
  const links = (look.buttons ?? []).filter((one) => (one.top ?? false) === top);
  if (links.length === 0) return null;
  return (
    <nav class={top ? "links" : "links below"} aria-label={text(top ? "linksTop" : "linksBelow")}>
      {[false, true].map((end) => (
        <span>
          {links.filter((one) => (one.end ?? false) === end).map((one) => (
            <a href={one.link} rel="noopener noreferrer" target={one.link.startsWith("/") ? undefined : "_blank"}>
              {one.icon && <img src={one.icon} alt="" onError={(event) => event.currentTarget.remove()} />}
              {one.text}
            </a>
          ))}
        </span>
      ))}
    </nav>
  );
}

function Bar() {
  const who = person.value;
  const label = { system: "themeSystem", light: "themeLight", dark: "themeDark" } as const;
  return (
    <header>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>{text("skip")}</a>
      <Brand />
      <button type="button" class="menu" popovertarget="pages">{text("menu")}</button>
      <nav id="pages" popover="auto" aria-label={text("navigation")}>
        {pageNames.filter((name) => name === pageName || (pages[name].needs?.() ?? true) || session.value === "guest").map((name) => (
          <a href={`${home}/${name}${plain ? "?plain" : ""}`} aria-current={pageName === name ? "page" : undefined}>{text(labels[name] as Text)}</a>
        ))}
      </nav>
      <span class="end">
        <label class="inline">
          <span class="hidden">{text("theme")}</span>
          <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value)}>
            {themes.map((name) => <option value={name}>{text(label[name])}</option>)}
          </select>
        </label>
        {session.value === "guest" && <a href={`${home}/keys`}>{text("signIn")}</a>}
        {who && session.value !== "out" && session.value !== "guest" && (
          <>
            <span class="who" title={[text("signedInAs", { name: nameOf(who) }), ...(who.groups ?? [])].join("\n")}>{nameOf(who)}</span>
            <button type="button" onClick={signOut}>{text("signOut")}</button>
          </>
        )}
      </span>
    </header>
  );
}

/** Whether the studio needs no session here: then an evaluation of nothing is refused for what it lacks. */
async function open(): Promise<boolean> {
  if (pageName !== "studio") return false;
  try {
    await send(`${group}/syncpatchevaluations`, { method: "POST", body: "{}", probing: true });
  } catch (failure) {
    return failure instanceof Refusal && (failure.code === 400 || failure.code === 422);
  }
  return true;
}

/** A page that is loaded by those who open it. A page of an earlier version asks for a script that is gone: it is loaded again, once. */
function Later({ load }: { load: () => Promise<ComponentType> }) {
  const found = useSignal<ComponentType | null>(null);
  const failed = useSignal(false);
  useEffect(() => {
    Promise.all([load(), loadTexts()]).then(
      ([loaded]) => {
        if (history.state?.reloaded) history.replaceState(null, "");
        found.value = loaded;
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
  const Found = found.value;
  return Found ? <Found /> : <p class="quiet" role="status">{text("loading")}</p>;
}

/** Whether the address asks for the sign-in, for another tab whose session ends. It asks once. */
function asksForSignIn(): boolean {
  const asks = new URLSearchParams(location.search).has("signin");
  if (asks) history.replaceState(null, "", location.pathname);
  return asks;
}

function App() {
  const refused = useSignal<Refusal | null>(null);
  useEffect(() => {
    if (asksForSignIn()) {
      session.value = "out";
      return;
    }
    comeBack().catch((failure) => { refused.value = asRefusal(failure); }).then(() => Promise.all([whoami(), readRights()])).then(
      ([self]) => {
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
      <Ending />
      {(state === "in" || state === "ended") && <Links top />}
      <main id="content" tabIndex={-1}>
        {state === "unknown" && <p class="quiet" role="status">{text("loading")}</p>}
        {state === "out" && (
          <div class="card narrow">
            <h1>{text("signIn")}</h1>
            <SignIn refused={refused.value} />
            {look.legal && <iframe title={text("legal")} sandbox="allow-popups allow-popups-to-escape-sandbox" src={`${home}/legal`} />}
          </div>
        )}
        {(state === "in" || state === "ended" || state === "guest") && (page.here ? <page.here /> : page.load && <Later load={page.load} />)}
      </main>
      {(state === "in" || state === "ended") && <Links top={false} />}
      {(state === "ended" || state === "in" && again.value) && (
        <Dialog title={text("signIn")} close={state === "in" ? () => (again.value = false) : undefined}>
          <SignIn again />
        </Dialog>
      )}
    </>
  );
}

const root = document.getElementById("app");
if (root) render(<App />, root);
