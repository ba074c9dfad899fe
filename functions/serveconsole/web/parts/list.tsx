import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { effect, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ask, type Column, type Meta, type Row } from "../api";
import type { watchList } from "../live";
import { withoutStyles } from "../branding";
import { text, type Text } from "../texts";
import { formatDistance, formatDateTime } from "../times";
import { Command } from "./command";
import { Dialog } from "./dialog";
import { Problem } from "./problem";

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

function Cell({ column, cell, object }: { column: Column; cell: unknown; object: TimedObject }) {
  const time = times[column.name]?.(object);
  if (time) return <td><time dateTime={time} title={formatDateTime(time)}>{formatDistance(time)}</time></td>;
  return <td>{cell === null || cell === undefined ? "" : String(cell)}</td>;
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

/** Keeps the filter, the order, the opened object and further parameters in the address, so that the address can be shared. */
export function useAddress(parameters: Record<string, Signal<string>> = {}): { filter: Signal<string>; sort: Signal<string>; openedName: Signal<string> } {
  const query = new URLSearchParams(location.search);
  const filter = useSignal(query.get("filter") ?? "");
  const sort = useSignal(query.get("sort") ?? "");
  const openedName = useSignal(query.get("name") ?? "");
  const fields = { filter, sort, name: openedName, ...parameters };
  // The address changes together with the list: a page that is reloaded at once shows the same.
  useLayoutEffect(() => {
    const query = new URLSearchParams(withoutStyles ? { plain: "" } : {});
    for (const [name, { value }] of Object.entries(fields)) if (value) query.set(name, value);
    history.replaceState(history.state, "", query.size > 0 ? `?${query}` : location.pathname);
  }, Object.values(fields).map(({ value }) => value));
  return { filter, sort, openedName };
}

/**
 * Returns the object that the address opens: a row, or an object that is on no page of the list that is shown. Undefined: none is opened, or it is
 * not known yet. Null: the caller can see no such object. Path is its path in the API.
 */
export function useOpened<T extends TimedObject>(list: ReturnType<typeof watchList<T>>, id: string, path: string): T | null | undefined {
  const row = list.rows.value.find((row) => idOf(row.object) === id)?.object;
  const unlisted = useSignal<{ id: string; object: T | null } | null>(null);
  const loaded = list.loaded.value;
  const lookup = id !== "" && row === undefined && loaded && list.more.value !== "";
  useEffect(() => {
    if (!lookup) return;
    const current = new AbortController();
    ask<T>(path, { signal: current.signal }).catch(() => null).then((object) => {
      if (!current.signal.aborted) unlisted.value = { id, object };
    });
    return () => current.abort();
  }, [lookup, id, list.rows.value]);
  if (id === "" || !loaded) return undefined;
  if (row || !lookup) return row ?? null;
  return unlisted.value?.id === id ? unlisted.value.object : undefined;
}

/** Says that the opened object does not exist. */
export function AbsentDialog({ name, close }: { name: string; close: () => void }) {
  return (
    <Dialog title={name} close={close}>
      <p>{text("list.absent")}</p>
      <div class="buttons"><button type="button" class="primary" onClick={close}>{text("action.close")}</button></div>
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
function ColumnHeader({ column, sort }: { column: Column; sort: Signal<string> }) {
  const { name, description } = column;
  const order = sort.value === name ? "ascending" : sort.value === `-${name}` ? "descending" : undefined;
  const next = order === "ascending" ? `-${name}` : order === "descending" ? "" : name;
  return (
    <th scope="col" title={description} aria-sort={order}>
      <button type="button" class={`link ${order ?? ""}`} onClick={() => (sort.value = next)}>{name}</button>
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

/** Shows the selection in the checkboxes of the rows. The rows are not rendered again for it: there may be thousands. */
function useCheckboxes(selection: Selection | undefined) {
  const body = useRef<HTMLTableSectionElement>(null);
  const show = () => {
    if (!selection) return;
    const selected = selection.value;
    for (const box of body.current?.querySelectorAll<HTMLInputElement>(".pick input") ?? []) box.checked = selected.has(box.value);
  };
  useLayoutEffect(show);
  useEffect(() => effect(show), [selection]);
  return {
    ref: body,
    onChange: ({ target }: Event) => {
      if (selection && target instanceof HTMLInputElement) setSelected(selection, [target.value], target.checked);
    },
    // The whole cell selects the row.
    onClick: ({ target }: Event) => {
      if (target instanceof HTMLElement && target.matches(".pick")) target.querySelector("input")?.click();
    },
  };
}

/** A list as a Table of the API, with the columns that the API sends. */
export function List<T extends TimedObject>(props: {
  list: ReturnType<typeof watchList<T>>; texts: ListTexts; address: ReturnType<typeof useAddress>; wide?: string[]; command: string;
  isOff?: (object: T) => boolean; buttons?: ComponentChildren; children?: ComponentChildren;
  /** The selected rows, and what is shown beside the filter about them. Absent: no row can be selected. */
  selection?: { selected: Selection; bar: (shown: Row<T>[]) => ComponentChildren };
}) {
  const { list, texts, address: { filter, sort, openedName }, wide = [], command, isOff, buttons, children, selection } = props;
  const checkboxes = useCheckboxes(selection?.selected);
  useEffect(() => list.begin(), [list]);
  useEffect(() => { document.title = `${text(texts.title)} · ${text("app.product")}`; }, []);
  const visibleColumns = list.columns.value.map((column, i) => ({ column, i })).filter(({ column }) => column.priority === 0 || wide.includes(column.name));
  const filterWords = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const allRows = list.rows.value;
  const rows = sortRows(filterWords.length === 0 ? allRows : allRows.filter((row: Row<T>) => {
    const cells = [row.object.metadata.namespace ?? "", ...row.cells].join(" ").toLowerCase();
    return filterWords.every((word) => cells.includes(word));
  }), list.columns.value, sort.value);
  const mode = list.mode.value;
  const namespaced = allRows.some((row) => row.object.metadata.namespace);
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
        <span class="quiet" role="status">
          {list.loaded.value && (rows.length === allRows.length
            ? text(allRows.length === 1 ? texts.countOne : texts.count, { count: allRows.length })
            : text(texts.countFiltered, { shown: rows.length, count: allRows.length }))}
        </span>
        {selection?.bar(rows)}
        <span class="room" />
        {mode !== "still" && <span class={`state ${mode}`}>{text(mode === "stream" ? "list.live" : mode === "poll" ? "list.polling" : "list.paused")}</span>}
        {mode === "paused" && <button type="button" onClick={list.resume}>{text("list.resume")}</button>}
      </div>
      <Problem refusal={list.problem.value} />
      {!list.loaded.value && !list.problem.value && <p class="quiet">{text("state.loading")}</p>}
      {list.loaded.value && (
        <div class="table" tabIndex={0} role="region" aria-label={text(texts.title)}>
          <table>
            <thead>
              <tr>
                {selection && <td class="pick"><SelectAll selection={selection.selected} uids={rows.map((row) => row.object.metadata.uid)} /></td>}
                {namespaced && <th scope="col">{text("field.namespace")}</th>}
                {visibleColumns.map(({ column }) => <ColumnHeader column={column} sort={sort} />)}
              </tr>
            </thead>
            <tbody {...checkboxes}>
              {rows.map((row) => (
                <tr key={row.object.metadata.uid} class={isOff?.(row.object) ? "off" : ""}>
                  {selection && <td class="pick"><input type="checkbox" value={row.object.metadata.uid} aria-label={text("list.select", { name: idOf(row.object) })} /></td>}
                  {namespaced && <td>{row.object.metadata.namespace}</td>}
                  {visibleColumns.map(({ column, i }) => i === 0 ? (
                    <th scope="row">
                      <button type="button" class="link" aria-label={text("list.open", { name: String(row.cells[i]) })} onClick={() => (openedName.value = idOf(row.object))}>
                        {String(row.cells[i])}
                      </button>
                    </th>
                  ) : <Cell column={column} cell={row.cells[i]} object={row.object} />)}
                </tr>
              ))}
            </tbody>
          </table>
          {rows.length === 0 && <p class="quiet pad">{text(allRows.length === 0 ? texts.empty : "list.emptyFilter")}</p>}
        </div>
      )}
      {list.more.value && <p class="more"><button type="button" onClick={() => void list.next()}>{text("list.more")}</button></p>}
      <Command command={command} />
    </>
  );
}
