import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { group, type Column, type Row } from "../api";
import { live } from "../live";
import { AsKubectl } from "../parts/copy";
import { Problem } from "../parts/problem";
import { text } from "../texts";
import { distance, exact } from "../times";
import { Create, Once } from "./create";
import { Details } from "./details";
import type { Key } from "./key";

/** The path of the access keys. */
export const path = `${group}/ownedaccesskeys`;

/** The columns whose cells are times, which stay right while the page is open, with the time in the object. */
const times: Record<string, (key: Key) => string | undefined> = {
  Expires: (key) => key.status?.expirationTimestamp,
  "Last Activity": (key) => key.status?.lastActivity,
  Age: (key) => key.metadata.creationTimestamp,
};

function Cell({ column, cell, row }: { column: Column; cell: unknown; row: Row<Key> }) {
  const time = times[column.name]?.(row.object);
  if (time) return <td><time dateTime={time} title={exact(time)}>{distance(time)}</time></td>;
  return <td>{cell === null || cell === undefined ? "" : String(cell)}</td>;
}

/** The access keys that the caller may see. */
export function Keys() {
  const keys = useMemo(() => live<Key>(path), []);
  useEffect(() => keys.begin(), [keys]);
  useEffect(() => { document.title = `${text("keys")} · ${text("product")}`; }, []);
  const filter = useSignal(new URLSearchParams(location.search).get("filter") ?? "");
  const creating = useSignal(false);
  const made = useSignal<Key | null>(null);
  const opened = useSignal(new URLSearchParams(location.search).get("name") ?? "");

  useEffect(() => {
    const query = new URLSearchParams();
    if (filter.value) query.set("filter", filter.value);
    if (opened.value) query.set("name", opened.value);
    history.replaceState(null, "", query.size > 0 ? `?${query}` : location.pathname);
  }, [filter.value, opened.value]);

  const columns = keys.columns.value;
  const shown = columns.map((column, i) => ({ column, i })).filter(({ column }) => column.priority === 0 || column.name === "Disabled" || column.name === "Scope");
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = keys.rows.value;
  const rows = words.length === 0 ? all : all.filter((row) => {
    const cells = row.cells.join(" ").toLowerCase();
    return words.every((word) => cells.includes(word));
  });
  const mode = keys.mode.value;
  return (
    <>
      <div class="title">
        <div>
          <h1>{text("keys")}</h1>
          <p class="quiet">{text("keysLead")}</p>
        </div>
        <button type="button" class="primary" onClick={() => (creating.value = true)}>{text("newKey")}</button>
      </div>
      <div class="tools">
        <label class="inline">
          <span class="hidden">{text("filter")}</span>
          <input type="search" placeholder={text("filterHint")} value={filter.value} onInput={(event) => (filter.value = event.currentTarget.value)} />
        </label>
        <span class="quiet" role="status">
          {keys.loaded.value && (rows.length === all.length
            ? text(all.length === 1 ? "countOne" : "count", { count: all.length })
            : text("countFiltered", { shown: rows.length, count: all.length }))}
        </span>
        <span class="room" />
        <span class={`state ${mode}`}>{text(mode === "stream" ? "live" : mode === "poll" ? "polling" : "paused")}</span>
        {mode === "paused" && <button type="button" onClick={keys.resume}>{text("resume")}</button>}
      </div>
      <Problem of={keys.problem.value} />
      {!keys.loaded.value && !keys.problem.value && <p class="quiet">{text("loading")}</p>}
      {keys.loaded.value && (
        <div class="table" tabIndex={0} role="region" aria-label={text("keys")}>
          <table>
            <thead>
              <tr>{shown.map(({ column }) => <th scope="col" title={column.description}>{column.name}</th>)}</tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.object.metadata.uid} class={row.object.spec.disabled ? "off" : ""}>
                  {shown.map(({ column, i }) => i === 0 ? (
                    <th scope="row">
                      <button type="button" class="link" aria-label={text("open", { name: String(row.cells[i]) })} onClick={() => (opened.value = row.object.metadata.name)}>
                        {String(row.cells[i])}
                      </button>
                    </th>
                  ) : <Cell column={column} cell={row.cells[i]} row={row} />)}
                </tr>
              ))}
            </tbody>
          </table>
          {rows.length === 0 && <p class="quiet pad">{text(all.length === 0 ? "empty" : "emptyFilter")}</p>}
        </div>
      )}
      {keys.more.value && <p><button type="button" onClick={() => void keys.next()}>{text("more")}</button></p>}
      <AsKubectl command="kubectl get ownedaccesskeys -o wide --watch" />
      {creating.value && (
        <Create
          close={() => (creating.value = false)}
          made={(key) => {
            creating.value = false;
            made.value = key;
            void keys.refresh();
          }}
        />
      )}
      {made.value && <Once of={made.value} close={() => (made.value = null)} />}
      {opened.value && (
        <Details
          name={opened.value}
          row={all.find((row) => row.object.metadata.name === opened.value)?.object}
          loaded={keys.loaded.value}
          open={(name) => (opened.value = name)}
          changed={() => void keys.refresh()}
          close={() => (opened.value = "")}
        />
      )}
    </>
  );
}
