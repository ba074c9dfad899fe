import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { batch, effect, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { ask, Refusal, type Column, type Meta, type Row } from "../api";
import type { watchList } from "../live";
import { withoutStyles } from "../branding";
import { text, withoutTurns, type Text } from "../texts";
import { currentTime, day, formatDistance, formatDateTime, formatDuration, secondsOf } from "../times";
import { Command } from "./command";
import { Dialog } from "./dialog";
import { Initials } from "./initials";
import { Countdown, Problem, asRefusal } from "./problem";
import { Skeleton } from "./skeleton";
import { goBack, wayBack } from "./unsaved";
import { UserText } from "./usertext";

/** An object with the times that the lists show. */
export interface TimedObject {
  metadata: Meta;
  status?: object;
}

/** The columns whose cells are times, with the time of the object. Their texts stay right while the page is open. */
const times: Record<string, (object: TimedObject) => string | undefined> = {
  Expires: ({ status }) => (status as { expirationTimestamp?: string })?.expirationTimestamp,
  "Last Activity": ({ status }) => (status as { lastActivity?: string })?.lastActivity,
  Age: ({ metadata }) => metadata.creationTimestamp,
};

/** How long before its end a credential is marked, in milliseconds. Credentials for a day or less are made to end, and are not. */
const endingPeriod = 3 * day;

/** Reports whether a credential is made for a day or less. */
export function isForDay({ metadata: { creationTimestamp } }: TimedObject, end?: string): boolean {
  return end !== undefined && Date.parse(end) - Date.parse(creationTimestamp) <= day;
}

/** From how many letters a name may be cut, and how many letters of its end stay. */
const longName = 24;
const nameEnd = 12;

/** Draws the name of an object. Where a cell is too narrow for a long name, its middle is cut: its beginning and its end tell objects apart. */
export function Name({ name }: { name: string }) {
  if (name.length < longName) return <>{name}</>;
  return <span class="name" title={name}><span>{name.slice(0, -nameEnd)}</span><span>{name.slice(-nameEnd)}</span></span>;
}

/** Draws the text of an owner: "user:ana". */
export function OwnerText({ owner, displayName }: { owner: string; displayName?: string }) {
  const [, kind, name] = owner.match(/^(user|team|subject):(.+)$/) ?? [];
  if (!kind || !name) return <>{owner}</>;
  return <span class={`owner ${kind}`} title={owner}><Initials name={displayName || name} /><span class="hidden">{kind} </span>{displayName ? <span><UserText>{displayName}</UserText> <small class="quiet">({name})</small></span> : <Name name={name} />}</span>;
}

/** A state in a word, with a mark before it. */
export function Chip({ kind, children }: { kind: "good" | "off" | "warning" | "bad"; children: ComponentChildren }) {
  return <span class={`chip ${kind}`}>{children}</span>;
}

/** Draws the text of a scope, which the API separates with commas, in its parts. */
export function ScopeText({ scope }: { scope: string }) {
  if (scope === "<all>") return <>{text("scope.everything")}</>;
  if (scope === "<none>") return <>{text("state.nothing")}</>;
  return <span class="parts-of-scope" title={scope}>{scope.split(/, */).map((part) => <code>{part}</code>)}</span>;
}

/** The phase of a virtual cluster in a word, with a mark before it. */
export function PhaseChip({ phase }: { phase: string }) {
  return <Chip kind={phase === "Ready" ? "good" : phase === "Pending" ? "off" : "bad"}>{phaseText(phase)}</Chip>;
}

/** Returns the phase of a virtual cluster in words. Without an endpoint, it is pending: nothing has failed. */
export const phaseText = (phase = "") => (phase === "Pending" ? text("state.noEndpoint") : phase);

/** What cells of columns say in words. Times stand with the words of the column. */
const cellTexts: Record<string, (cell: string, time?: string) => string> = {
  Disabled: (cell) => text(cell === "true" ? "state.disabled" : "state.enabled"),
  Admin: (cell) => text(cell === "true" ? "state.yes" : "state.no"),
  Scope: (cell) => (cell === "<all>" ? text("scope.everything") : cell === "<none>" ? text("state.nothing") : cell),
  Phase: phaseText,
  TTL: (cell) => formatDuration(secondsOf(cell)),
  Expires: (cell, time) => (!time ? cell : timeLeft(time) > 0 ? formatDistance(time) : text("state.expired")),
};

/** Returns how far ahead a time is, in milliseconds. */
const timeLeft = (time: string) => Date.parse(time) - Math.max(currentTime.value, Date.now());

/** Returns what a cell shows as text. */
function textOfCell(name: string, cell: unknown, time?: string): string {
  const plain = cell === null || cell === undefined ? "" : String(cell);
  return cellTexts[name]?.(plain, time) ?? (time ? formatDistance(time) : plain === "<none>" ? "" : plain);
}

/** What draws the texts of columns by their names, from the text and the cell. The others are drawn as text. */
const decorations: Record<string, (shown: string, cell: unknown, time: string | undefined, object: TimedObject) => ComponentChildren> = {
  Owner: (shown) => <OwnerText owner={shown} />,
  Disabled: (shown, cell) => <Chip kind={String(cell) === "true" ? "off" : "good"}>{shown}</Chip>,
  Scope: (shown, cell) => (String(cell).startsWith("<") ? shown : <ScopeText scope={shown} />),
  Signer: (shown) => (shown.includes(", ") ? <Chip kind="warning">{shown}</Chip> : shown),
  Phase: (_, cell) => <PhaseChip phase={String(cell)} />,
  Expires: (shown, _, time, object) => {
    const left = time ? timeLeft(time) : Infinity;
    return left <= 0 || (left < endingPeriod && !isForDay(object, time)) ? <Chip kind={left > 0 ? "warning" : "bad"}>{shown}</Chip> : shown;
  },
};

/** Columns whose heads say what their decorated cells are. */
const headings: Record<string, Text> = { Disabled: "field.state", Age: "field.created", TTL: "lifetime.title" };

/** Columns that narrow lists leave out. Their values are in the sheet. */
const minorColumns = ["Type", "User Agent"];
/** The columns of which a phone shows the first that there is, beside the name. */
const phoneColumns = ["Expires", "Phase", "Disabled"];

/** Returns the class of the cells of a column: where they have no room. */
function classOf(name: string, names: string[]): string {
  return minorColumns.includes(name) ? "rest minor" : name === phoneColumns.find((column) => names.includes(column)) ? "" : "rest";
}

function Cell({ column: { name }, cell, object, place }: { column: Column; cell: unknown; object: TimedObject; place: string }) {
  const time = times[name]?.(object);
  const shown = textOfCell(name, cell, time);
  const drawn = decorations[name]?.(shown, cell, time, object) ?? shown;
  return <td class={place} dir="auto">{time ? <time dateTime={time} title={formatDateTime(time)}>{drawn}</time> : drawn}</td>;
}

/** Returns the name of an object in the address: with its namespace, if it has one. */
export function idOf({ metadata }: { metadata: Meta }): string {
  return metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name;
}

/** The texts of a list. */
export interface ListTexts {
  title: Text;
  lead: Text;
  count: Text;
  countOne: Text;
  countFiltered: Text;
  empty: Text;
}

/** The state of an entry of the history: how many entries of the page below it were pushed to open something. */
interface HistoryState {
  depth?: number;
}

/**
 * Keeps the filter, the order, the opened object, the form of a new object and further parameters in the address, so that the address can be shared. Opening
 * pushes an entry of the history, which Back takes away. Closing goes back over these entries.
 */
export function useAddress(parameters: Record<string, Signal<string>> = {}) {
  // An address that somebody writes may have "new" without a value.
  const fieldOf = (query: URLSearchParams, name: string) => query.get(name) || (name === "new" && query.has(name) ? "yes" : "");
  const query = new URLSearchParams(location.search);
  const filter = useSignal(fieldOf(query, "filter"));
  const sort = useSignal(fieldOf(query, "sort"));
  const openedName = useSignal(fieldOf(query, "name"));
  const creating = useSignal(fieldOf(query, "new"));
  const fields = { filter, sort, name: openedName, new: creating, ...parameters };
  /** Returns the address with some fields. */
  const addressOf = (values: Record<string, string>) => {
    const query = new URLSearchParams(withoutStyles ? { plain: "" } : {});
    for (const [name, value] of Object.entries(values)) if (value) query.set(name, value);
    return query.size > 0 ? `?${query}` : location.pathname;
  };
  const values = () => Object.fromEntries(Object.entries(fields).map(([name, { value }]) => [name, value]));
  const opened = useRef(`${openedName.value} ${creating.value}`);
  const write = (arrived = false) => {
    if (wayBack.current && !arrived) return;
    const state = (history.state ?? {}) as HistoryState;
    const depth = state.depth ?? 0;
    const nowOpened = `${openedName.value} ${creating.value}`;
    const changed = nowOpened !== opened.current;
    opened.current = nowOpened;
    if (changed && nowOpened !== " ") history.pushState({ ...state, depth: depth + 1 }, "", addressOf(values()));
    else if (changed && depth > 0) goBack(depth);
    else history.replaceState(state, "", addressOf(values()));
  };
  // The address changes together with the list: a page that is reloaded at once shows the same.
  useLayoutEffect(() => write(), Object.values(fields).map(({ value }) => value));
  useEffect(() => {
    const follow = () => {
      const query = new URLSearchParams(location.search);
      opened.current = `${fieldOf(query, "name")} ${fieldOf(query, "new")}`;
      if (wayBack.current) {
        // The page has changed already. What changed since belongs to the address as well.
        write(true);
        return;
      }
      batch(() => { for (const [name, field] of Object.entries(fields)) field.value = fieldOf(query, name); });
    };
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, []);
  return { filter, sort, openedName, creating, addressOf, addressOfObject: (name: string) => addressOf({ ...values(), name }) };
}

/**
 * Returns the object that the address opens: a row, or an object that is on no page of the list that is shown. Undefined: none is opened, or it is
 * not known yet. A refusal: why the object cannot be shown. Path is its path in the API.
 */
export function useOpened<T extends TimedObject>(list: ReturnType<typeof watchList<T>>, id: string, path: string): T | Refusal | undefined {
  const rows = list.rows.value;
  const row = useMemo(() => (id === "" ? undefined : rows.find((row) => idOf(row.object) === id)?.object), [rows, id]);
  const unlisted = useSignal<{ id: string; object: T | Refusal } | null>(null);
  const loaded = list.loaded.value;
  const failed = list.problem.value !== null;
  const lookup = id !== "" && row === undefined && (loaded ? list.more.value !== "" : failed);
  useEffect(() => {
    if (!lookup) return;
    const current = new AbortController();
    ask<T>(path, { signal: current.signal }).catch(asRefusal).then((object) => {
      if (!current.signal.aborted) unlisted.value = { id, object };
    });
    return () => current.abort();
  }, [lookup, id, rows]);
  if (id === "" || (!loaded && !failed)) return undefined;
  if (row) return row;
  if (!lookup) return new Refusal(404, "");
  return unlisted.value?.id === id ? unlisted.value.object : undefined;
}

/** Says why the opened object cannot be shown. */
export function AbsentDialog({ name, refusal, close, absent = "list.absent" }: { name: string; refusal: Refusal; close: () => void; absent?: Text }) {
  return (
    <Dialog title={name} close={close}>
      {refusal.code === 404 || refusal.code === 403 ? <p>{text(absent)}</p> : <Problem refusal={refusal} />}
      <div class="buttons"><button type="button" onClick={close}>{text("action.close")}</button></div>
    </Dialog>
  );
}

const collator = new Intl.Collator("en", { numeric: true });

/** Returns the rows in the order of a column: its name, with a minus before it for the reverse. Rows with nothing in the column are the last. */
function sortRows<T extends TimedObject>(rows: Row<T>[], columns: Column[], sort: string): Row<T>[] {
  const name = sort.replace(/^-/, "");
  const index = columns.findIndex((column) => column.name === name);
  if (index < 0) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  const value = (row: Row<T>) => {
    if (!(name in times)) return row.cells[index];
    const time = times[name]?.(row.object);
    return time && Date.parse(time);
  };
  return rows.map((row) => ({ row, value: value(row) })).sort((a, b) => {
    const [first, second] = [a.value ?? "", b.value ?? ""];
    if (first === "" || second === "") return first === second ? 0 : first === "" ? 1 : -1;
    return sign * (typeof first === "number" && typeof second === "number" ? first - second : collator.compare(String(first), String(second)));
  }).map(({ row }) => row);
}

/** The header of a column. Its button sorts the list by the column, in reverse, and not at all. */
function ColumnHeader({ column, sort, place }: { column: Column; sort: Signal<string>; place: string }) {
  const { name, description } = column;
  const order = sort.value === name ? "ascending" : sort.value === `-${name}` ? "descending" : undefined;
  const next = order === "ascending" ? `-${name}` : order === "descending" ? "" : name;
  return (
    <th scope="col" class={place} title={description} aria-sort={order}>
      <button type="button" class={`link ${order ?? ""}`} onClick={() => (sort.value = next)}>{headings[name] ? text(headings[name]) : name}</button>
    </th>
  );
}

/** The UIDs of the selected rows. */
export type Selection = Signal<ReadonlySet<string>>;

/** Selects rows, or removes them from the selection. */
export function setSelected(selection: Selection, uids: string[], selected: boolean): void {
  const next = new Set(selection.value);
  for (const uid of uids) selected ? next.add(uid) : next.delete(uid);
  selection.value = next;
}

/** Returns an empty selection of rows of a list. Rows that disappear leave the selection, and leaving the page clears it. */
export function useSelection<T extends TimedObject>(list: ReturnType<typeof watchList<T>>): Selection {
  const selection = useSignal<ReadonlySet<string>>(new Set());
  const rows = list.rows.value;
  useEffect(() => {
    const present = new Set(rows.map((row) => row.object.metadata.uid));
    const absent = [...selection.peek()].filter((uid) => !present.has(uid));
    if (absent.length > 0) setSelected(selection, absent, false);
  }, [rows]);
  useEffect(() => {
    // A browser may restore the page as it was.
    const clear = () => { selection.value = new Set(); };
    addEventListener("pagehide", clear);
    return () => removeEventListener("pagehide", clear);
  }, []);
  return selection;
}

/** The checkbox that selects all rows that are shown. */
function SelectAll({ selection, uids }: { selection: Selection; uids: string[] }) {
  const selected = uids.filter((uid) => selection.value.has(uid)).length;
  const all = selected > 0 && selected === uids.length;
  return (
    <input
      type="checkbox" aria-label={text("list.selectAll")} checked={all} indeterminate={selected > 0 && !all} disabled={uids.length === 0}
      onChange={(event) => setSelected(selection, uids, event.currentTarget.checked)}
    />
  );
}

/** Returns a text as the filter and the search compare it: without case and accents. */
export const foldText = (value: string) => value.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** The texts of rows in which the filter looks: what the row shows, and its values. They are kept as long as there is a filter: distances of times change. */
let searchTexts = new WeakMap<Row<TimedObject>, string>();

function keepSearchText(row: Row<TimedObject>, columns: Column[]): string {
  const { object, cells } = row;
  const shown = columns.map(({ name }, i) => textOfCell(name, cells[i], times[name]?.(object)));
  const searchText = foldText([object.metadata.namespace ?? "", ...cells, ...shown].join(" "));
  searchTexts.set(row, searchText);
  return searchText;
}

/** Lists with more rows draw the rows around the window alone. */
const drawAll = 100;
/** How many rows are drawn above and below the window at least, and by how many rows it moves. The browser lays out all of them at each key press in the filter. */
const overscan = 6;
const step = 4;

/** Returns which rows are drawn, and how high a row is. All rows have the same height. */
function useDrawnRows(body: RefObject<HTMLTableSectionElement | null>, count: number): { from: number; to: number; height: number } {
  const drawn = useSignal({ from: 0, to: drawAll, height: 48 });
  const windowed = count > drawAll;
  useLayoutEffect(() => {
    if (!windowed) return;
    const measure = () => {
      const rows = body.current?.querySelectorAll("tr:not(.spacer)");
      if (!body.current || !rows || rows.length < 2) return;
      const height = (rows[rows.length - 1]!.getBoundingClientRect().top - rows[0]!.getBoundingClientRect().top) / (rows.length - 1);
      const top = body.current.getBoundingClientRect().top;
      const first = Math.floor(-top / height) - overscan;
      const end = Math.ceil((innerHeight - top) / height) + overscan;
      const to = Math.min(count, Math.max(step, Math.ceil(end / step) * step));
      const from = Math.max(0, Math.min(first - (first % step), to - step));
      const last = drawn.peek();
      if (from !== last.from || to !== last.to || height !== last.height) drawn.value = { from, to, height };
    };
    measure();
    addEventListener("scroll", measure, { passive: true, capture: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure, { capture: true });
      removeEventListener("resize", measure);
    };
  }, [windowed, count]);
  if (!windowed) return { from: 0, to: count, height: 0 };
  const { from, to, height } = drawn.value;
  return from < count ? { from, to: Math.min(to, count), height } : { from: 0, to: drawAll, height };
}

/** A row in place of rows that are not drawn. */
function Spacer({ rows, height }: { rows: number; height: number }) {
  if (rows === 0) return null;
  return <tr class="spacer" aria-hidden="true"><td ref={(cell) => cell?.style.setProperty("block-size", `${rows * height}px`)} /></tr>;
}

/** The rows of a list. A click opens the object of the row, unless it selects text or the row. */
function Rows<T extends TimedObject>({ rows, columns, hasNamespace, address, isOff, selection }: {
  rows: Row<T>[]; columns: { column: Column; i: number }[]; hasNamespace: boolean; address: ReturnType<typeof useAddress>; isOff?: (object: T) => boolean; selection?: Selection;
}) {
  const body = useRef<HTMLTableSectionElement>(null);
  const { from, to, height } = useDrawnRows(body, rows.length);
  // The rows are not rendered again for a selection: there may be thousands.
  const show = () => {
    if (!selection) return;
    const selected = selection.value;
    for (const box of body.current?.querySelectorAll<HTMLInputElement>(".pick input") ?? []) box.checked = selected.has(box.value);
  };
  useLayoutEffect(show);
  useEffect(() => effect(show), [selection]);
  const onChange = ({ target }: Event) => {
    if (selection && target instanceof HTMLInputElement) setSelected(selection, [target.value], target.checked);
  };
  const onClick = ({ target, ctrlKey, metaKey, shiftKey, altKey }: MouseEvent) => {
    if (!(target instanceof Element)) return;
    // The whole cell selects the row.
    if (target.matches(".pick")) target.querySelector("input")?.click();
    else if (!target.closest("a, .pick") && !ctrlKey && !metaKey && !shiftKey && !altKey && getSelection()?.isCollapsed !== false) target.closest("tr")?.querySelector<HTMLElement>("th a")?.click();
  };
  const indexOf = (name: string) => columns.find(({ column }) => column.name === name)?.i ?? -1;
  const [displayName, owner] = [indexOf("Display Name"), indexOf("Owner")];
  const names = columns.map(({ column }) => column.name);
  const places = names.map((name) => classOf(name, names));
  return (
    <tbody ref={body} onChange={onChange} onClick={onClick}>
      <Spacer rows={from} height={height} />
      {rows.slice(from, to).map((row, position) => {
        const id = idOf(row.object);
        const second = row.cells[displayName];
        const phoneLine = [row.object.metadata.namespace, String(row.cells[owner] ?? "").replace(/^\w+:/, "")].filter(Boolean).join(" · ");
        return (
          <tr key={row.object.metadata.uid} class={isOff?.(row.object) ? "off" : ""} aria-rowindex={from + position + 2}>
            {selection && <td class="pick"><input type="checkbox" value={row.object.metadata.uid} aria-label={text("list.select", { name: id })} /></td>}
            {hasNamespace && <td class="rest"><Name name={row.object.metadata.namespace ?? ""} /></td>}
            {columns.map(({ column, i }, place) => i === displayName ? null : i === 0 ? (
              <th scope="row">
                <a
                  href={address.addressOfObject(id)} aria-label={text("list.open", { name: String(row.cells[i]) })}
                  onClick={(event) => {
                    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
                    event.preventDefault();
                    address.openedName.value = id;
                  }}
                >
                  <Name name={String(row.cells[i])} />
                </a>
                {second ? <span class="second" dir="auto">{withoutTurns(String(second))}</span> : null}
                {phoneLine && <span class="second phone" data-line={phoneLine} />}
              </th>
            ) : <Cell column={column} cell={row.cells[i]} object={row.object} place={places[place]!} />)}
          </tr>
        );
      })}
      <Spacer rows={rows.length - to} height={height} />
    </tbody>
  );
}

/** How the list is kept up to date, with a button for what a person may do about it. */
function ModeText({ list }: { list: Pick<ReturnType<typeof watchList>, "mode" | "retryTime" | "problem" | "lastHeard" | "retry" | "resume"> }) {
  const mode = list.mode.value;
  if (mode === "still") return null;
  return (
    <>
      <span class={`state ${mode}`}>
        {mode === "failed" ? <Countdown end={list.retryTime.value} label="list.failed" />
          : text(mode === "stream" ? "list.live" : mode === "poll" ? "list.polling" : mode === "paused" ? "list.paused" : "list.connecting")}
      </span>
      {list.problem.value && list.lastHeard.value > 0 && <span class="quiet">{text("list.lastHeard", { when: formatDistance(new Date(list.lastHeard.value).toISOString()) })}</span>}
      {mode === "paused" && <button type="button" onClick={list.resume}>{text("list.resume")}</button>}
      {mode === "failed" && <button type="button" onClick={list.retry}>{text("action.tryAgain")}</button>}
    </>
  );
}

/** A list as a Table of the API, with the columns that the API sends. */
export function List<T extends TimedObject>(props: {
  list: ReturnType<typeof watchList<T>>; texts: ListTexts; address: ReturnType<typeof useAddress>; wide?: string[]; command: string;
  isOff?: (object: T) => boolean; buttons?: ComponentChildren; children?: ComponentChildren;
  /** What is below the text of an empty list. */
  ifEmpty?: ComponentChildren;
  /** The selected rows, and what is shown beside the filter about them. Absent: no row can be selected. */
  selection?: { selected: Selection; bar: (shown: Row<T>[]) => ComponentChildren };
}) {
  const { list, texts, address, wide = [], command, isOff, buttons, children, ifEmpty, selection } = props;
  const { filter, sort } = address;
  useEffect(() => list.begin(), [list]);
  useEffect(() => { document.title = `${text(texts.title)} · ${text("app.product")}`; }, []);
  const columns = list.columns.value;
  const visibleColumns = columns.map((column, i) => ({ column, i })).filter(({ column }) => column.priority === 0 || column.name === "Display Name" || wide.includes(column.name));
  const columnNames = visibleColumns.map(({ column }) => column.name);
  const allRows = list.rows.value;
  const sortedRows = useMemo(() => sortRows(allRows, columns, sort.value), [allRows, columns, sort.value]);
  const rows = useMemo(() => {
    const words = foldText(filter.value).split(/\s+/).filter(Boolean);
    if (words.length === 0) {
      searchTexts = new WeakMap();
      return sortedRows;
    }
    const matching: Row<T>[] = [];
    for (const row of sortedRows) {
      const searchText = searchTexts.get(row) ?? keepSearchText(row, columns);
      let matches = true;
      for (const word of words) matches &&= searchText.includes(word);
      if (matches) matching.push(row);
    }
    return matching;
  }, [sortedRows, columns, filter.value]);
  const more = list.more.value !== "";
  const isStill = list.mode.value === "still";
  const isFiltered = filter.value.trim() !== "";
  // A filter and an order are of all objects: the other pages are read while there is one.
  const readsOn = more && !isStill && (isFiltered || sort.value !== "") && !list.problem.value;
  useEffect(() => { if (readsOn) void list.next(); }, [readsOn, list.more.value]);
  const [shown, read, count] = [rows.length, allRows.length, list.total.value];
  const countText = () => {
    if (more && isStill) return text("list.soFar", { count: read });
    if (more && isFiltered) return text(readsOn ? "list.countReading" : "list.countOfFirst", { shown, read, count });
    if (more && sort.value) return text(readsOn ? "list.sortedReading" : "list.first", { read, count });
    if (isFiltered && shown !== read) return text(texts.countFiltered, { shown, count });
    return text(count === 1 ? texts.countOne : texts.count, { count });
  };
  const hasNamespace = useMemo(() => allRows.some((row) => row.object.metadata.namespace), [allRows]);
  return (
    <>
      <div class="title">
        <div>
          <h1>{text(texts.title)}</h1>
          <p class="quiet">{text(texts.lead)}</p>
        </div>
        {buttons}
      </div>
      {children}
      <div class="tools">
        <label class="inline">
          <span class="hidden">{text("list.filter")}</span>
          <input type="search" placeholder={text("list.filterHint")} value={filter.value} onInput={(event) => (filter.value = event.currentTarget.value)} />
        </label>
        <span class="quiet" role="status">{list.loaded.value && countText()}</span>
        {selection?.bar(rows)}
        <span class="room" />
        <ModeText list={list} />
      </div>
      <Problem refusal={list.problem.value} />
      {!list.loaded.value && !list.problem.value && <Skeleton rows={8} />}
      {list.loaded.value && (
        <div class="table list" tabIndex={0} role="region" aria-label={text(texts.title)}>
          <table aria-rowcount={rows.length + 1}>
            <thead>
              <tr aria-rowindex={1}>
                {selection && <td class="pick"><SelectAll selection={selection.selected} uids={rows.map((row) => row.object.metadata.uid)} /></td>}
                {hasNamespace && <th scope="col" class="rest">{text("field.namespace")}</th>}
                {visibleColumns.map(({ column, i }) => column.name !== "Display Name" && <ColumnHeader column={column} sort={sort} place={i === 0 ? "name" : classOf(column.name, columnNames)} />)}
              </tr>
            </thead>
            <Rows rows={rows} columns={visibleColumns} hasNamespace={hasNamespace} address={address} isOff={isOff} selection={selection?.selected} />
          </table>
          {rows.length === 0 && <p class="quiet pad">{read === 0 && !more && ifEmpty ? ifEmpty : text(read === 0 && !more ? texts.empty : more ? "list.emptySoFar" : "list.emptyFilter")}</p>}
        </div>
      )}
      {more && !readsOn && <p class="more"><button type="button" disabled={list.reading.value} onClick={() => void list.next()}>{text("list.more")}</button></p>}
      <Command command={command} />
    </>
  );
}
