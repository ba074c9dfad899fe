import { render, type ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { effect, signal, useSignal } from "@preact/signals";
import { Refusal, extending, group, home, send, session } from "./api";
import { loadStyles, branding, withoutStyles } from "./branding";
import { listsClusters } from "./kinds/virtualcluster";
import { Home } from "./pages/home";
import { Keys } from "./pages/keys";
import labels from "./pages.json";
import { Dialog } from "./parts/dialog";
import { SessionNotice } from "./parts/sessionnotice";
import { Problem, asRefusal } from "./parts/problem";
import { SignIn, finishLogin, readSelf } from "./parts/signin";
import { isAdmin, displayNameOf, person } from "./person";
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

/** What shows a page: who may use it, and how it is loaded unless it is part of the first script. */
interface Page {
  needs?: () => boolean;
  /** Whether the page is of use without a session as well. */
  public?: boolean;
  component?: ComponentType;
  load?: () => Promise<ComponentType>;
}

const pages: Record<PageName, Page> = {
  home: { component: Home },
  keys: { needs: () => may("list", "ownedaccesskeys"), component: Keys },
  clusters: { needs: listsClusters, load: () => import("./pages/clusters").then((it) => it.Clusters) },
  tokens: { needs: () => may("list", "directclusterendpointtokens"), load: () => import("./pages/tokens").then((it) => it.Tokens) },
  studio: { needs: () => may("create", "syncpatchevaluations"), load: () => import("./pages/studio").then((it) => it.Studio) },
  found: { public: true, load: () => import("./pages/foundkey").then((it) => it.FoundKey) },
  projects: { needs: () => may("list", "projects"), load: () => import("./pages/projects").then((it) => it.Projects) },
  people: { needs: () => may("list", "users"), load: () => import("./pages/people").then((it) => it.People) },
  teams: { needs: () => may("list", "teams"), load: () => import("./pages/teams").then((it) => it.Teams) },
  trustrules: { needs: () => isAdmin() && may("list", "trustrules"), load: () => import("./pages/trustrules").then((it) => it.TrustRules) },
  audit: { needs: () => may("list", "auditevents"), load: () => import("./pages/audit").then((it) => it.Audit) },
  config: { needs: () => may("get", "configs"), load: () => import("./pages/config").then((it) => it.Configuration) },
};
/** The names of the pages, in the order of the menu. */
const pageNames = Object.keys(labels) as PageName[];
const pageName = pageNames.find((name) => location.pathname.slice(home.length + 1) === name) ?? "home";
const page = pages[pageName];

async function signOut() {
  const self = person.value;
  // The key of a sign-in belongs to this session. Other keys may be used elsewhere.
  if (self?.accessKey && self.accessKeyType === "Login") {
    await send(`${group}/ownedaccesskeys/${encodeURIComponent(self.accessKey)}`, { method: "DELETE", probing: true }).catch(() => undefined);
  }
  await send("/auth/session", { method: "DELETE" }).catch(() => undefined);
  location.reload();
}

/** The name of the console, with the logo of the configuration. A picture that cannot be loaded leaves the built-in look. */
function Brand() {
  const failed = useSignal(false);
  const [logo, smallLogo] = failed.value ? [] : [branding.logo, branding.smallLogo];
  const onError = () => { failed.value = true; };
  if (logo) {
    return (
      <strong class="brand">
        <picture>
          {smallLogo && <source media="(width < 48rem)" srcset={smallLogo} />}
          <img class="logo" src={logo} alt={text("app.product")} onError={onError} />
        </picture>
      </strong>
    );
  }
  return (
    <strong class="brand">
      {smallLogo ? <img class="mark" src={smallLogo} alt="" onError={onError} /> : <span class="mark own" aria-hidden="true" />}
      <span class="product">{text("app.product")}</span>
    </strong>
  );
}

/** The links that the configuration adds, above or below the content. */
function Links({ top }: { top: boolean }) {
  const links = (branding.buttons ?? []).filter((link) => (link.top ?? false) === top);
  if (links.length === 0) return null;
  return (
    <nav class={top ? "links" : "links below"} aria-label={text(top ? "app.linksTop" : "app.linksBelow")}>
      {[false, true].map((end) => (
        <span>
          {links.filter((link) => (link.end ?? false) === end).map((link) => (
            <a href={link.link} rel="noopener noreferrer" target={link.link.startsWith("/") ? undefined : "_blank"}>
              {link.icon && <img src={link.icon} alt="" onError={(event) => event.currentTarget.remove()} />}
              {link.text}
            </a>
          ))}
        </span>
      ))}
    </nav>
  );
}

function Bar() {
  const self = person.value;
  const label = { system: "app.themeSystem", light: "app.themeLight", dark: "app.themeDark" } as const;
  return (
    <header>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>{text("app.skip")}</a>
      <Brand />
      <button type="button" class="menu" popovertarget="pages">{text("app.menu")}</button>
      <nav id="pages" popover="auto" aria-label={text("app.navigation")}>
        {pageNames.filter((name) => name === pageName || (pages[name].needs?.() ?? true) || session.value === "guest").map((name) => (
          <a href={`${home}/${name}${withoutStyles ? "?plain" : ""}`} aria-current={pageName === name ? "page" : undefined}>{text(labels[name] as Text)}</a>
        ))}
      </nav>
      <span class="end">
        <label class="inline">
          <span class="hidden">{text("app.theme")}</span>
          <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value)}>
            {themes.map((name) => <option value={name}>{text(label[name])}</option>)}
          </select>
        </label>
        {session.value === "guest" && <a href={`${home}/keys`}>{text("signin.title")}</a>}
        {self && session.value !== "out" && session.value !== "guest" && (
          <>
            <span class="who" title={[text("session.signedInAs", { name: displayNameOf(self) }), ...(self.groups ?? [])].join("\n")}>{displayNameOf(self)}</span>
            <button type="button" onClick={signOut}>{text("session.signOut")}</button>
          </>
        )}
      </span>
    </header>
  );
}

/** Reports whether the studio needs no session here: then an empty evaluation is refused as invalid, and not as unauthenticated. */
async function isStudioPublic(): Promise<boolean> {
  if (pageName !== "studio") return false;
  try {
    await send(`${group}/syncpatchevaluations`, { method: "POST", body: "{}", probing: true });
  } catch (failure) {
    return failure instanceof Refusal && (failure.code === 400 || failure.code === 422);
  }
  return true;
}

/** A page that is a script of its own. A document of an earlier version names a script that no longer exists: it is reloaded, once. */
function LazyPage({ load }: { load: () => Promise<ComponentType> }) {
  const component = useSignal<ComponentType | null>(null);
  const hasFailed = useSignal(false);
  useEffect(() => {
    Promise.all([load(), loadTexts()]).then(
      ([loaded]) => {
        if (history.state?.reloaded) history.replaceState(null, "");
        component.value = loaded;
      },
      () => {
        if (history.state?.reloaded) hasFailed.value = true;
        else {
          history.replaceState({ reloaded: true }, "");
          location.reload();
        }
      },
    );
  }, []);
  if (hasFailed.value) return <Problem refusal={new Refusal(0, "")} />;
  const Component = component.value;
  return Component ? <Component /> : <p class="quiet" role="status">{text("state.loading")}</p>;
}

/** Reports whether the address asks for the sign-in on behalf of another tab, and removes the request from the address. */
function takeSignInRequest(): boolean {
  const requested = new URLSearchParams(location.search).has("signin");
  if (requested) history.replaceState(null, "", location.pathname);
  return requested;
}

function App() {
  const refusal = useSignal<Refusal | null>(null);
  useEffect(() => {
    if (takeSignInRequest()) {
      session.value = "out";
      return;
    }
    finishLogin().catch((failure) => { refusal.value = asRefusal(failure); }).then(() => Promise.all([readSelf(), readRights()])).then(
      ([self]) => {
        person.value = self;
        session.value = "in";
      },
      async () => (session.value = (await isStudioPublic()) ? "guest" : "out"),
    );
  }, []);
  const state = session.value;
  return (
    <>
      <Bar />
      <SessionNotice />
      {(state === "in" || state === "ended") && <Links top />}
      <main id="content" tabIndex={-1}>
        {state === "unknown" && <p class="quiet" role="status">{text("state.loading")}</p>}
        {state === "out" && !page.public && (
          <div class="card narrow">
            <h1>{text("signin.title")}</h1>
            <SignIn refusal={refusal.value} />
            <p><a href={`${home}/found`}>{text("page.found")}</a></p>
            {branding.legal && <iframe title={text("app.legal")} sandbox="allow-popups allow-popups-to-escape-sandbox" src={`${home}/legal`} />}
          </div>
        )}
        {(state === "in" || state === "ended" || state === "guest" || (state === "out" && page.public)) && (page.component ? <page.component /> : page.load && <LazyPage load={page.load} />)}
      </main>
      {(state === "in" || state === "ended") && <Links top={false} />}
      {(state === "ended" || state === "in" && extending.value) && (
        <Dialog title={text("signin.title")} close={state === "in" ? () => (extending.value = false) : undefined}>
          <SignIn renewal />
        </Dialog>
      )}
    </>
  );
}

const root = document.getElementById("app");
if (root) render(<App />, root);
