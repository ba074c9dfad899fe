import { useSignal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import labels from "../pages.json";
import { Icon, type IconName } from "./icons";
import {
  asRefusal, clustersPath, Dialog, Fact, foldText, group, home, idOf, listPages, may, messageOf, type Meta, OwnerText, projectNamespaces, type Refusal, text, type Text, UserText, withoutStyles,
} from "../shared";

/** The name of a page: the end of its path. */
type PageName = keyof typeof labels;

/** The pages whose lists are searched, with their resource and with the text of the button that makes a new object. */
const kinds: { page: PageName; resource: string; newLabel: Text }[] = [
  { page: "clusters", resource: "virtualclusterinstances", newLabel: "clusters.new" },
  { page: "keys", resource: "ownedaccesskeys", newLabel: "keys.new" },
  { page: "tokens", resource: "directclusterendpointtokens", newLabel: "tokens.new" },
  { page: "projects", resource: "projects", newLabel: "projects.new" },
  { page: "people", resource: "users", newLabel: "people.new" },
  { page: "teams", resource: "teams", newLabel: "teams.new" },
  { page: "trustrules", resource: "trustrules", newLabel: "trustrules.new" },
];

/** How many objects a request reads, and how many results of a kind are shown. */
const pageSize = 500;
const shownResults = 6;

/** The columns whose texts are searched and shown besides the name and the owner. */
const describingColumns = ["Display Name", "Email", "Access Key"];

/** What can be found: its name, what is shown beside it, the folded text that is searched, and its address in the console. */
interface Entry {
  name: string;
  second: string;
  owner: string;
  searchText: string;
  href: string;
}

/** What was read of a list. Total counts all its objects, as far as it is known. */
interface Reading {
  entries: Entry[];
  total: number;
  done: boolean;
  problem?: Refusal;
}

/** Returns the address of a page with a query. */
function addressOf(page: PageName, query: Record<string, string>): string {
  const parameters = new URLSearchParams({ ...(withoutStyles ? { plain: "" } : {}), ...query });
  return `${home}/${page}${parameters.size > 0 ? `?${parameters}` : ""}`;
}

/** Reads all pages of the list of a page, and reports after each of them. */
async function readList(page: PageName, resource: string, signal: AbortSignal, report: (reading: Reading) => void): Promise<void> {
  const paths = page === "clusters" && !may("list", resource) ? projectNamespaces().map(clustersPath) : [`${group}/${resource}`];
  let entries: Entry[] = [];
  try {
    for (const [i, path] of paths.entries()) {
      for await (const { rows = [], columnDefinitions = [], metadata } of listPages<{ metadata: Meta }>(path, { includeObject: "Metadata", limit: String(pageSize) }, { signal })) {
        const names = columnDefinitions.map((column) => column.name);
        entries = entries.concat(rows.map(({ cells, object }) => {
          const cellOf = (column: string) => {
            const cell = cells[names.indexOf(column)];
            return cell === undefined || cell === null || cell === "<none>" ? "" : String(cell);
          };
          const name = idOf(object);
          const second = describingColumns.map(cellOf).filter(Boolean).join(" · ");
          const owner = cellOf("Owner");
          return { name, second, owner, searchText: foldText(`${name} ${second} ${owner}`), href: addressOf(page, { name }) };
        }));
        report({ entries, total: entries.length + (metadata?.remainingItemCount ?? 0), done: !metadata?.continue && i === paths.length - 1 });
      }
    }
  } catch (failure) {
    if (!signal.aborted) report({ entries, total: entries.length, done: true, problem: asRefusal(failure) });
  }
}

/** The rank of an entry whose name is the query. */
const exactRank = 0;

/** Returns the place of an entry among the entries that have all words: a name that is the query, with or without its namespace, begins with it, has a word that does, or has it. */
function rankOf({ name: displayed }: Entry, query: string): number {
  const name = foldText(displayed);
  if (name === query || name.endsWith(`/${query}`)) return exactRank;
  const at = name.indexOf(query);
  return at < 0 ? 4 : at > 0 ? (/[\w]/.test(name[at - 1] ?? "") ? 3 : 2) : 1;
}

/** Returns the entries that have all words, the best first. */
function findEntries(entries: Entry[], words: string[]): Entry[] {
  const query = words.join(" ");
  const matching = entries.filter(({ searchText }) => words.every((word) => searchText.includes(word)));
  return matching.map((entry) => ({ entry, rank: rankOf(entry, query) })).sort((a, b) => a.rank - b.rank).map(({ entry }) => entry);
}

/** A result in the list of results: a link to what was found, or to the rest of what was found of its kind. */
interface Result {
  icon: IconName;
  entry: Entry;
}

/** The search over everything that the session may list, and over the pages. Pages are those of the menu, and query is what was typed before it was open. */
export function Search({ pages, query: typed, close }: { pages: PageName[]; query: string; close: () => void }) {
  const id = useId();
  const query = useSignal(typed);
  /** The address of the result that was chosen with the arrow keys. Empty: none was, and the first one counts. */
  const chosen = useSignal("");
  const readings = useSignal<Partial<Record<PageName, Reading>>>({});
  const results = useRef<HTMLDivElement>(null);
  const searched = useMemo(() => kinds.filter(({ page }) => pages.includes(page)), []);
  const ownEntries = useMemo(() => {
    const entryOf = (name: string, href: string) => ({ name, second: "", owner: "", searchText: foldText(name), href });
    return {
      pages: pages.map((page) => ({ icon: page, entry: entryOf(text(labels[page] as Text), addressOf(page, {})) })),
      actions: searched.filter(({ resource }) => may("create", resource)).map(({ page, newLabel }) => ({ icon: page, entry: entryOf(text(newLabel), addressOf(page, { new: "yes" })) })),
    };
  }, []);
  useEffect(() => {
    // A browser may restore the page as it was.
    addEventListener("pagehide", close);
    return () => removeEventListener("pagehide", close);
  }, []);
  const words = foldText(query.value).split(/\s+/).filter(Boolean);
  const begun = useRef(false);
  begun.current ||= words.length > 0;
  // Nothing is read before somebody types, nor after the dialog is closed.
  useEffect(() => {
    if (!begun.current) return;
    const current = new AbortController();
    for (const { page, resource } of searched) void readList(page, resource, current.signal, (reading) => { readings.value = { ...readings.value, [page]: reading }; });
    return () => current.abort();
  }, [begun.current]);
  let found = 0;
  const groups: { label: Text; results: Result[] }[] = [];
  for (const [label, own] of [["search.actions", ownEntries.actions], ["search.pages", ownEntries.pages]] as const) {
    const matching = own.filter(({ entry }) => words.every((word) => entry.searchText.includes(word)));
    if (words.length > 0) found += matching.length;
    if (matching.length > 0) groups.push({ label, results: matching });
  }
  for (const { page } of words.length > 0 ? searched : []) {
    const matching = findEntries(readings.value[page]?.entries ?? [], words);
    if (matching.length === 0) continue;
    found += matching.length;
    const shown: Result[] = matching.slice(0, shownResults).map((entry) => ({ icon: page, entry }));
    if (matching.length > shownResults) {
      shown.push({ icon: "more", entry: { name: text("search.more", { count: matching.length - shownResults }), second: "", owner: "", searchText: "", href: addressOf(page, { filter: words.join(" ") }) } });
    }
    groups.push({ label: labels[page] as Text, results: shown });
  }
  // Enter opens the first result: groups with an object of just this name come first.
  const hasExact = ({ results: [first] }: { results: Result[] }) => first !== undefined && rankOf(first.entry, words.join(" ")) === exactRank;
  groups.sort((a, b) => Number(hasExact(b)) - Number(hasExact(a)));
  const all = groups.flatMap((group) => group.results.map(({ entry }) => entry.href));
  const active = Math.max(0, all.indexOf(chosen.value));
  useEffect(() => { results.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }); }, [all[active]]);
  const known = searched.map(({ page }) => readings.value[page]);
  const done = known.every((reading) => reading?.done);
  const failures = searched.flatMap(({ page }) => {
    const problem = readings.value[page]?.problem;
    return problem ? [text("search.failed", { kind: text(labels[page] as Text), message: messageOf(problem) })] : [];
  });
  const count = { found, read: known.reduce((sum, reading) => sum + (reading?.entries.length ?? 0), 0), total: known.reduce((sum, reading) => sum + (reading?.total ?? 0), 0) };
  const state = words.length === 0 ? text("search.hint", { kinds: [...searched.map(({ page }) => text(labels[page] as Text)), text("search.pages")].join(", ").toLowerCase() })
    : !done ? text("search.reading", count)
    : found > 0 ? text(found === 1 ? "search.foundOne" : "search.found", count)
    : text(failures.length > 0 ? "search.nothingRead" : "search.nothing");
  function onKeyDown(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: shownResults, PageUp: -shownResults }[event.key];
    if (event.isComposing || all.length === 0) return;
    if (step) {
      event.preventDefault();
      const next = active + step;
      // The arrow keys go round, pages stop at the ends.
      chosen.value = all[Math.abs(step) === 1 ? (next + all.length) % all.length : Math.min(all.length - 1, Math.max(0, next))]!;
    } else if (event.key === "Enter") {
      event.preventDefault();
      const href = all[active]!;
      if (event.ctrlKey || event.metaKey) open(href, "_blank", "noopener");
      else location.href = href;
    }
  }
  let index = 0;
  return (
    <Dialog title={text("app.search")} close={close} wide>
      <div class="search">
        <Icon name="search" />
        <input
          type="text" role="combobox" aria-label={text("search.label")} aria-expanded={all.length > 0} aria-controls={all.length > 0 ? `${id}-results` : undefined} aria-autocomplete="list"
          aria-activedescendant={all.length > 0 ? `${id}-${active}` : undefined} aria-describedby={`${id}-state`} placeholder={text("search.label")} autocomplete="off" autocapitalize="off" spellcheck={false}
          autofocus value={query.value} onKeyDown={onKeyDown} onInput={(event) => { query.value = event.currentTarget.value; chosen.value = ""; }}
        />
        <button type="button" class="icononly" aria-label={text("action.close")} onClick={close}><Icon name="close" /></button>
      </div>
      <p id={`${id}-state`} class="quiet" role="status">{state}</p>
      {failures.map((failure) => <p class="wrong">{failure}</p>)}
      {all.length > 0 && (
        <div ref={results} id={`${id}-results`} class="results" role="listbox" aria-label={text("search.results")}>
          {groups.map(({ label, results }) => (
            <div role="group" aria-labelledby={`${id}-${label}`}>
              <span class="group" id={`${id}-${label}`}>{text(label)}</span>
              {results.map(({ icon, entry: { name, second, owner, href } }) => {
                const position = index++;
                return (
                  <a
                    key={href} id={`${id}-${position}`} role="option" aria-selected={position === active} tabIndex={-1} href={href}
                    onPointerMove={() => { if (position !== active) chosen.value = href; }}
                  >
                    <Icon name={icon} />
                    <span class="found">{name}{second && <small class="quiet"> <UserText>{second}</UserText></small>}</span>
                    {owner && <OwnerText owner={owner} />}
                  </a>
                );
              })}
            </div>
          ))}
        </div>
      )}
    </Dialog>
  );
}

const shortcuts: [string[], Text][] = [[["/", "Ctrl K"], "app.shortcutSearch"], [["F"], "app.shortcutFilter"], [["?"], "app.shortcutHelp"], [["Esc"], "app.shortcutEscape"]];

/** The dialog about the keys of the keyboard. */
export function Shortcuts({ close }: { close: () => void }) {
  return (
    <Dialog title={text("app.shortcuts")} close={close}>
      <dl>{shortcuts.map(([keys, meaning]) => <Fact name={keys.map((key) => <><kbd>{key}</kbd> </>)}>{text(meaning)}</Fact>)}</dl>
      <div class="buttons"><button type="button" onClick={close}>{text("action.close")}</button></div>
    </Dialog>
  );
}
