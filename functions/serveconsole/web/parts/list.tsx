import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { effect, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ask, type Column, type Meta, type Row } from "../api";
import type { live } from "../live";
import { plain } from "../look";
import { text, type Text } from "../texts";
import { distance, exact } from "../times";
import { AsKubectl } from "./copy";
import { Dialog } from "./dialog";
import { Problem } from "./problem";

/** An object whose times the lists know. */
export interface Timed {
  metadata: Meta;
  status?: object;
}

/** The columns whose cells are times, which stay right while the page is open, with the time in the object. */
const times: Record<string, (object: Timed) => string | undefined> = {
  Expires: ({ status }) => (status as { expirationTimestamp?: string })?.expirationTimestamp,
  "Last Activity": ({ status }) => (status as { lastActivity?: string })?.lastActivity,
  Age: ({ metadata }) => metadata.creationTimestamp,
};

function Cell({ column, cell, object }: { column: Column; cell: unknown; object: Timed }) {
  const time = times[column.name]?.(object);
  if (time) return <td><time dateTime={time} title={exact(time)}>{distance(time)}</time></td>;
  return <td>{cell === null || cell === undefined ? "" : String(cell)}</td>;
}

/** The name of an object on its page: with its namespace, if it has one. */
export function idOf({ metadata }: { metadata: Meta }): string {
  return metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name;
}

/** The texts of a list. */
export interface Words {
  title: Text;
  lead: Text;
  count: Text;
  countOne: Text;
  countFiltered: Text;
  empty: Text;
}

/** Keeps the filter, the order, the opened object and more in the address, so that it can be shared. */
export function useAddress(more: Record<string, Signal<string>> = {}): { filter: Signal<string>; sort: Signal<string>; opened: Signal<string> } {
  const query = new URLSearchParams(location.search);
  const filter = useSignal(query.get("filter") ?? "");
  const sort = useSignal(query.get("sort") ?? "");
  const opened = useSignal(query.get("name") ?? "");
  const all = { filter, sort, name: opened, ...more };
  // The address is right as soon as the list is: a page that is loaded again at once shows the same.
  useLayoutEffect(() => {
    const query = new URLSearchParams(plain ? { plain: "" } : {});
    for (const [name, { value }] of Object.entries(all)) if (value) query.set(name, value);
    history.replaceState(history.state, "", query.size > 0 ? `?${query}` : location.pathname);
  }, Object.values(all).map(({ value }) => value));
  return { filter, sort, opened };
}

/**
 * Returns the object that the address opens: a row, or an object that is on no page of the list that is shown. Undefined: none is opened, or it is
 * not known yet. Null: the caller can see no such object. Path is its path in the API.
 */
export function useOpened<T extends Timed>(of: ReturnType<typeof live<T>>, id: string, path: string): T | null | undefined {
  const row = of.rows.value.find((row) => idOf(row.object) === id)?.object;
  const elsewhere = useSignal<{ id: string; object: T | null } | null>(null);
  const loaded = of.loaded.value;
  const look = id !== "" && row === undefined && loaded && of.more.value !== "";
  useEffect(() => {
    if (!look) return;
    const current = new AbortController();
    ask<T>(path, { signal: current.signal }).catch(() => null).then((object) => {
      if (!current.signal.aborted) elsewhere.value = { id, object };
    });
    return () => current.abort();
  }, [look, id, of.rows.value]);
  if (id === "" || !loaded) return undefined;
  if (row || !look) return row ?? null;
  return elsewhere.value?.id === id ? elsewhere.value.object : undefined;
}

/** Says that what the address opens is not there. */
export function Gone({ name, close }: { name: string; close: () => void }) {
  return (
    <Dialog title={name} close={close}>
      <p>{text("goneHere")}</p>
      <div class="buttons"><button type="button" class="primary" onClick={close}>{text("close")}</button></div>
    </Dialog>
  );
}

const alphabetical = new Intl.Collator("en", { numeric: true });

/** Returns the rows in the order of a column: its name, with a minus before it for the reverse. Rows with nothing in the column are the last. */
function inOrder<T extends Timed>(rows: Row<T>[], columns: Column[], sort: string): Row<T>[] {
  const name = sort.replace(/^-/, "");
  const at = columns.findIndex((column) => column.name === name);
  if (at < 0) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  const value = (row: Row<T>) => {
    if (!(name in times)) return row.cells[at];
    const time = times[name]?.(row.object);
    return time && Date.parse(time);
  };
  return rows.map((row) => ({ row, value: value(row) })).sort((a, b) => {
    const [first, second] = [a.value ?? "", b.value ?? ""];
    if (first === "" || second === "") return first === second ? 0 : first === "" ? 1 : -1;
    return sign * (typeof first === "number" && typeof second === "number" ? first - second : alphabetical.compare(String(first), String(second)));
  }).map(({ row }) => row);
}

/** The head of a column. It sorts the list by the column, in reverse, and not at all. */
function Head({ column, sort }: { column: Column; sort: Signal<string> }) {
  const { name, description } = column;
  const order = sort.value === name ? "ascending" : sort.value === `-${name}` ? "descending" : undefined;
  const next = order === "ascending" ? `-${name}` : order === "descending" ? "" : name;
  return (
    <th scope="col" title={description} aria-sort={order}>
      <button type="button" class={`link ${order ?? ""}`} onClick={() => (sort.value = next)}>{name}</button>
    </th>
  );
}

/** The uids of the rows that somebody has selected. */
export type Selection = Signal<ReadonlySet<string>>;

/** Adds rows to those that are selected, or takes them out. */
export function select(of: Selection, uids: string[], selected: boolean): void {
  const next = new Set(of.value);
  for (const uid of uids) selected ? next.add(uid) : next.delete(uid);
  of.value = next;
}

/** Returns an empty selection of rows of a list. Rows that disappear leave it, and it is empty when the page is left. */
export function useSelection<T extends Timed>(of: ReturnType<typeof live<T>>): Selection {
  const selection = useSignal<ReadonlySet<string>>(new Set());
  const rows = of.rows.value;
  useEffect(() => {
    const here = new Set(rows.map((row) => row.object.metadata.uid));
    const gone = [...selection.peek()].filter((uid) => !here.has(uid));
    if (gone.length > 0) select(selection, gone, false);
  }, [rows]);
  useEffect(() => {
    // A browser may show the page as it was when somebody comes back.
    const clear = () => { selection.value = new Set(); };
    addEventListener("pagehide", clear);
    return () => removeEventListener("pagehide", clear);
  }, []);
  return selection;
}

/** The box that selects all rows that are shown. */
function All({ of, uids }: { of: Selection; uids: string[] }) {
  const selected = uids.filter((uid) => of.value.has(uid)).length;
  const all = selected > 0 && selected === uids.length;
  return (
    <input
      type="checkbox" aria-label={text("selectAll")} checked={all} indeterminate={selected > 0 && !all} disabled={uids.length === 0}
      onChange={(event) => select(of, uids, event.currentTarget.checked)}
    />
  );
}

/** Shows the selection in the boxes of the rows. They are not drawn again for it: there may be thousands. */
function useBoxes(of: Selection | undefined) {
  const body = useRef<HTMLTableSectionElement>(null);
  const show = () => {
    if (!of) return;
    const selected = of.value;
    for (const box of body.current?.querySelectorAll<HTMLInputElement>(".pick input") ?? []) box.checked = selected.has(box.value);
  };
  useLayoutEffect(show);
  useEffect(() => effect(show), [of]);
  return {
    ref: body,
    onChange: ({ target }: Event) => {
      if (of && target instanceof HTMLInputElement) select(of, [target.value], target.checked);
    },
    // The whole cell selects the row.
    onClick: ({ target }: Event) => {
      if (target instanceof HTMLElement && target.matches(".pick")) target.querySelector("input")?.click();
    },
  };
}

/** A list as a Table of the API: its columns are those that the API sends. */
export function List<T extends Timed>(props: {
  of: ReturnType<typeof live<T>>; words: Words; address: ReturnType<typeof useAddress>; wide?: string[]; command: string;
  off?: (object: T) => boolean; buttons?: ComponentChildren; children?: ComponentChildren;
  /** The rows that are selected, and what is shown of them beside the filter. Without it, no row can be selected. */
  selection?: { of: Selection; bar: (shown: Row<T>[]) => ComponentChildren };
}) {
  const { of, words, address: { filter, sort, opened }, wide = [], command, off, buttons, children, selection } = props;
  const boxes = useBoxes(selection?.of);
  useEffect(() => of.begin(), [of]);
  useEffect(() => { document.title = `${text(words.title)} · ${text("product")}`; }, []);
  const shown = of.columns.value.map((column, i) => ({ column, i })).filter(({ column }) => column.priority === 0 || wide.includes(column.name));
  const typed = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = of.rows.value;
  const rows = inOrder(typed.length === 0 ? all : all.filter((row: Row<T>) => {
    const cells = [row.object.metadata.namespace ?? "", ...row.cells].join(" ").toLowerCase();
    return typed.every((word) => cells.includes(word));
  }), of.columns.value, sort.value);
  const mode = of.mode.value;
  const namespaced = all.some((row) => row.object.metadata.namespace);
  return (
    <>
      <div class="title">
        <div>
          <h1>{text(words.title)}</h1>
          <p class="quiet">{text(words.lead)}</p>
        </div>
        {buttons}
      </div>
      {children}
      <div class="tools">
        <label class="inline">
          <span class="hidden">{text("filter")}</span>
          <input type="search" placeholder={text("filterHint")} value={filter.value} onInput={(event) => (filter.value = event.currentTarget.value)} />
        </label>
        <span class="quiet" role="status">
          {of.loaded.value && (rows.length === all.length
            ? text(all.length === 1 ? words.countOne : words.count, { count: all.length })
            : text(words.countFiltered, { shown: rows.length, count: all.length }))}
        </span>
        {selection?.bar(rows)}
        <span class="room" />
        {mode !== "still" && <span class={`state ${mode}`}>{text(mode === "stream" ? "live" : mode === "poll" ? "polling" : "paused")}</span>}
        {mode === "paused" && <button type="button" onClick={of.resume}>{text("resume")}</button>}
      </div>
      <Problem of={of.problem.value} />
      {!of.loaded.value && !of.problem.value && <p class="quiet">{text("loading")}</p>}
      {of.loaded.value && (
        <div class="table" tabIndex={0} role="region" aria-label={text(words.title)}>
          <table>
            <thead>
              <tr>
                {selection && <td class="pick"><All of={selection.of} uids={rows.map((row) => row.object.metadata.uid)} /></td>}
                {namespaced && <th scope="col">{text("namespace")}</th>}
                {shown.map(({ column }) => <Head column={column} sort={sort} />)}
              </tr>
            </thead>
            <tbody {...boxes}>
              {rows.map((row) => (
                <tr key={row.object.metadata.uid} class={off?.(row.object) ? "off" : ""}>
                  {selection && <td class="pick"><input type="checkbox" value={row.object.metadata.uid} aria-label={text("select", { name: idOf(row.object) })} /></td>}
                  {namespaced && <td>{row.object.metadata.namespace}</td>}
                  {shown.map(({ column, i }) => i === 0 ? (
                    <th scope="row">
                      <button type="button" class="link" aria-label={text("open", { name: String(row.cells[i]) })} onClick={() => (opened.value = idOf(row.object))}>
                        {String(row.cells[i])}
                      </button>
                    </th>
                  ) : <Cell column={column} cell={row.cells[i]} object={row.object} />)}
                </tr>
              ))}
            </tbody>
          </table>
          {rows.length === 0 && <p class="quiet pad">{text(all.length === 0 ? words.empty : "emptyFilter")}</p>}
        </div>
      )}
      {of.more.value && <p class="more"><button type="button" onClick={() => void of.next()}>{text("more")}</button></p>}
      <AsKubectl command={command} />
    </>
  );
}
