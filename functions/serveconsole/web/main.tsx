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
import { Icon } from "./parts/icons";
import { Initials } from "./parts/initials";
import { Skeleton } from "./parts/skeleton";
import { SessionNotice } from "./parts/sessionnotice";
import { RetryProblem, asRefusal } from "./parts/problem";
import { SignIn, announceSignOut, finishLogin, readSelf } from "./parts/signin";
import { displayNameOf, nameOf, person } from "./person";
import { may, readRights, rightsProblem, rules } from "./rights";
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

/** The groups of pages in the side bar. */
const groups = { work: "app.work", tools: "app.tools", people: "app.people", platform: "app.platform" } as const;

/** What shows a page: its group, who may use it, and how it is loaded unless it is part of the first script. */
interface Page {
  group: keyof typeof groups;
  needs?: () => boolean;
  /** Whether the page is of use without a session as well. */
  public?: boolean;
  component?: ComponentType;
  load?: () => Promise<ComponentType>;
}

const pages: Record<PageName, Page> = {
  home: { group: "work", component: Home },
  clusters: { group: "work", needs: listsClusters, load: () => import("./pages/clusters").then((it) => it.Clusters) },
  keys: { group: "work", needs: () => may("list", "ownedaccesskeys"), component: Keys },
  tokens: { group: "work", needs: () => may("list", "directclusterendpointtokens"), load: () => import("./pages/tokens").then((it) => it.Tokens) },
  studio: { group: "tools", needs: () => may("create", "syncpatchevaluations"), load: () => import("./pages/studio").then((it) => it.Studio) },
  found: { group: "tools", public: true, load: () => import("./pages/foundkey").then((it) => it.FoundKey) },
  projects: { group: "people", needs: () => may("list", "projects"), load: () => import("./pages/projects").then((it) => it.Projects) },
  people: { group: "people", needs: () => may("list", "users"), load: () => import("./pages/people").then((it) => it.People) },
  teams: { group: "people", needs: () => may("list", "teams"), load: () => import("./pages/teams").then((it) => it.Teams) },
  trustrules: { group: "people", needs: () => may("list", "trustrules"), load: () => import("./pages/trustrules").then((it) => it.TrustRules) },
  audit: { group: "platform", needs: () => may("list", "auditevents"), load: () => import("./pages/audit").then((it) => it.Audit) },
  config: { group: "platform", needs: () => may("get", "configs"), load: () => import("./pages/config").then((it) => it.Configuration) },
};
/** The names of the pages, in the order of the menu. */
const pageNames = Object.keys(labels) as PageName[];
const pathName = location.pathname.slice(home.length + 1);
const pageName = pathName === "" ? "home" : pageNames.find((name) => pathName === name);
const page = pageName && pages[pageName];

async function signOut() {
  const self = person.value;
  // The key of a sign-in belongs to this session. Other keys may be used elsewhere.
  if (self?.accessKey && self.accessKeyType === "Login") {
    await send(`${group}/ownedaccesskeys/${encodeURIComponent(self.accessKey)}`, { method: "DELETE", probing: true }).catch(() => undefined);
  }
  await send("/auth/session", { method: "DELETE" }).catch(() => undefined);
  announceSignOut();
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

const themeLabels = { system: "app.themeSystem", light: "app.themeLight", dark: "app.themeDark" } as const;

/** The person who is signed in, with the groups, the theme, the keys and the sign-out. */
function PersonMenu() {
  const self = session.value === "out" || session.value === "guest" ? null : person.value;
  const name = self ? displayNameOf(self) : "";
  return (
    <div class="end">
      {session.value === "guest" && <a href={`${home}/keys`}>{text("signin.title")}</a>}
      <button type="button" class="person" popovertarget="person" title={name && text("session.signedInAs", { name })}>
        {self && <Initials name={name} />}
        <span class="who" dir="auto">{name || text("app.view")}</span>
        <Icon name="more" />
      </button>
      <div id="person" popover="auto" role="group" aria-label={name || text("app.view")}>
        {self && (
          <>
            <p class="whole" dir="auto"><strong>{name}</strong></p>
            {name !== nameOf(self) && <p class="quiet whole">{nameOf(self)}</p>}
            {(self.groups ?? []).length > 0 && <p class="quiet">{text("claim.groups")}: {self.groups?.map((group) => <code>{group} </code>)}</p>}
          </>
        )}
        <label>
          {text("app.theme")}
          <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value)}>
            {themes.map((name) => <option value={name}>{text(themeLabels[name])}</option>)}
          </select>
        </label>
        <button type="button" popovertarget="person" popovertargetaction="hide" onClick={() => (overlay.value = "help")}>{text("app.shortcuts")}</button>
        {self && <button type="button" onClick={signOut}>{text("session.signOut")}</button>}
      </div>
    </div>
  );
}

/** Returns the names of the pages that the session may use. */
function visiblePages(): PageName[] {
  return pageNames.filter((name) => name === pageName || (pages[name].needs?.() ?? true) || session.value === "guest");
}

/** The pages that the session may use, in their groups. */
function Pages() {
  const visible = visiblePages();
  return (
    <>
      <button type="button" class="menu" popovertarget="pages"><Icon name="menu" />{text("app.menu")}</button>
      <nav id="pages" popover="auto" aria-label={text("app.navigation")}>
        {(Object.keys(groups) as Page["group"][]).map((group) => {
          const names = visible.filter((name) => pages[name].group === group);
          return names.length > 0 && (
            <div role="group" aria-labelledby={`group-${group}`}>
              <span class="group" id={`group-${group}`}>{text(groups[group])}</span>
              {names.map((name) => (
                <a href={`${home}/${name}${withoutStyles ? "?plain" : ""}`} aria-current={pageName === name ? "page" : undefined}>
                  <Icon name={name} />{text(labels[name] as Text)}
                </a>
              ))}
            </div>
          );
        })}
      </nav>
    </>
  );
}

/** The side bar: the product, the platform, the pages and the person. Without a session, it is a bar on top. */
function Bar() {
  const state = session.value;
  return (
    <header>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>{text("app.skip")}</a>
      <div class="platform">
        <Brand />
        <span class="host" dir="ltr">{location.host}</span>
      </div>
      {(state === "in" || state === "ended") && (
        <button type="button" class="searchbutton" aria-label={text("app.search")} aria-keyshortcuts="/ Control+K" onClick={openSearch}>
          <Icon name="search" /><span>{text("app.search")}</span><kbd aria-hidden="true">/</kbd>
        </button>
      )}
      {state !== "out" && state !== "unknown" && <Pages />}
      <PersonMenu />
    </header>
  );
}

/** Which dialog over the page is open: the search, the keys of the keyboard, or none. */
const overlay = signal<"search" | "help" | null>(null);

/** Reports whether an event comes from an element that takes text. */
function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), textarea, select"));
}

/** What was typed since the search was opened, while its script is loaded. */
let searchText = "";

function openSearch() {
  if (session.value !== "in") return;
  searchText = "";
  overlay.value = "search";
}

/** The search, or the keys of the keyboard. Their script is loaded when the first of them is opened. */
function Overlay() {
  const parts = useSignal<typeof import("./parts/search") | "gone" | null>(null);
  useEffect(() => {
    Promise.all([import("./parts/search"), loadTexts()]).then(([loaded]) => { parts.value = loaded; }, () => { parts.value = "gone"; });
  }, []);
  const close = () => { overlay.value = null; };
  if (!parts.value) return null;
  if (parts.value === "gone") return <Dialog title={text("app.search")} close={close}><OldVersion /></Dialog>;
  const { Search, Shortcuts } = parts.value;
  return overlay.value === "help" ? <Shortcuts close={close} /> : <Search pages={visiblePages()} query={searchText} close={close} />;
}

document.addEventListener("keydown", (event) => {
  const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
  if (event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if ((ctrlKey || metaKey) && !altKey && !shiftKey && key.toLowerCase() === "k" && session.value === "in") {
    event.preventDefault();
    openSearch();
    return;
  }
  if (ctrlKey || metaKey || altKey || isTyping(event)) return;
  if (overlay.value) {
    if (key === "Escape") overlay.value = null;
    else if (key.length === 1) searchText += key;
    return;
  }
  const filter = document.querySelector<HTMLInputElement>("main input[type=search]");
  if (key === "?") overlay.value = "help";
  else if (key === "/") openSearch();
  else if (key.toLowerCase() === "f") filter?.select();
  else return;
  event.preventDefault();
});

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

/** Says that the script of the page is gone, or why it cannot be known. */
async function scriptProblem(): Promise<Refusal | "old"> {
  try {
    const { ok, status, statusText } = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
    return ok ? "old" : new Refusal(status, `${status} ${statusText}`);
  } catch {
    return new Refusal(0, "");
  }
}

/** Says that this document belongs to an earlier version, whose scripts no longer exist. */
function OldVersion() {
  return (
    <div class="problem" role="alert">
      <strong>{text("problem.newVersion")}</strong>
      <p>{text("problem.newVersionLead")}</p>
      <div class="buttons start retry"><button type="button" onClick={() => location.reload()}>{text("action.reload")}</button></div>
    </div>
  );
}

/** A page that is a script of its own. A document of an earlier version names a script that no longer exists: it is reloaded, once. */
function LazyPage({ load }: { load: () => Promise<ComponentType> }) {
  const component = useSignal<ComponentType | null>(null);
  const problem = useSignal<Refusal | "old" | null>(null);
  useEffect(() => {
    const { reloaded, ...state } = history.state ?? {};
    Promise.all([load(), loadTexts()]).then(
      ([loaded]) => {
        if (reloaded) history.replaceState(state, "");
        component.value = loaded;
      },
      async () => {
        if (reloaded) problem.value = await scriptProblem();
        else {
          history.replaceState({ ...state, reloaded: true }, "");
          location.reload();
        }
      },
    );
  }, []);
  if (problem.value === "old") return <OldVersion />;
  if (problem.value) return <RetryProblem refusal={problem.value} retry={() => location.reload()} />;
  const Component = component.value;
  return Component ? <Component /> : <Skeleton />;
}

/** Says that there is no page at the address. */
function Absent() {
  return (
    <>
      <h1>{text("app.absent")}</h1>
      <p>{text("app.absentLead")}</p>
      <p><a href={`${home}/home`}>{text("page.home")}</a></p>
    </>
  );
}

/** Says that the session may not use the page: a list would look as if there were nothing. */
function NotPermitted({ name }: { name: PageName }) {
  const title = text(labels[name] as Text);
  return <><h1>{title}</h1><p>{text("app.notPermitted", { page: title.toLowerCase() })}</p></>;
}

/** Reports whether it is known that the session may not use the page. */
const isNotPermitted = () => session.value !== "guest" && rules.value !== null && page?.needs?.() === false;

/** Reports whether the address asks for the sign-in on behalf of another tab, and removes the request from the address. */
function takeSignInRequest(): boolean {
  const requested = new URLSearchParams(location.search).has("signin");
  if (requested) history.replaceState(null, "", location.pathname);
  return requested;
}

function App() {
  const refusal = useSignal<Refusal | null>(null);
  // Why it is not known who is signed in, and what they may do.
  const failure = useSignal<Refusal | null>(null);
  async function begin() {
    try {
      const [self] = await Promise.all([readSelf(), readRights()]);
      const unknownRights = rightsProblem.value;
      if (unknownRights && (unknownRights.code <= 0 || unknownRights.code === 429 || unknownRights.code >= 500)) throw unknownRights;
      failure.value = null;
      person.value = self;
      session.value = "in";
    } catch (problem) {
      const refused = asRefusal(problem);
      if (refused.code !== 401) failure.value = refused;
      else {
        failure.value = null;
        session.value = (await isStudioPublic()) ? "guest" : "out";
      }
    }
  }
  useEffect(() => {
    if (takeSignInRequest()) {
      session.value = "out";
      return;
    }
    void finishLogin().catch((problem) => { refusal.value = asRefusal(problem); }).then(begin);
  }, []);
  const state = session.value;
  return (
    <div class={state === "out" ? "frame top" : "frame"}>
      <Bar />
      <div class="page">
        <SessionNotice />
        {(state === "in" || state === "ended") && <Links top />}
        <main id="content" tabIndex={-1}>
          {state === "unknown" && (failure.value ? <RetryProblem refusal={failure.value} retry={() => void begin()} /> : <Skeleton />)}
          {state === "out" && !page?.public && (
            <div class="card narrow">
              <h1>{text("signin.title")}</h1>
              <p class="quiet to">{text("signin.to", { product: text("app.product"), host: location.host })}</p>
              <SignIn refusal={refusal.value} />
              <p><a href={`${home}/found`}>{text("page.found")}</a></p>
              {branding.legal && <iframe title={text("app.legal")} sandbox="allow-popups allow-popups-to-escape-sandbox" src={`${home}/legal`} />}
            </div>
          )}
          {(state === "in" || state === "ended" || state === "guest" || (state === "out" && page?.public)) && (!page ? <Absent /> : isNotPermitted() ? <NotPermitted name={pageName} /> : page.component ? <page.component /> : page.load && <LazyPage load={page.load} />)}
        </main>
        {(state === "in" || state === "ended") && <Links top={false} />}
      </div>
      {overlay.value && <Overlay />}
      {(state === "ended" || state === "in" && extending.value) && (
        <Dialog title={text("signin.title")} close={state === "in" ? () => (extending.value = false) : undefined}>
          <SignIn renewal />
        </Dialog>
      )}
    </div>
  );
}

const root = document.getElementById("app");
if (root) render(<App />, root);
