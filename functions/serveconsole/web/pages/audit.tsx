import { batch, signal, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import {
  asRefusal, type Column, Copy, Dialog, download, Fact, group, list, List, type live, type Meta, type Mode, person, Preview, quoted,
  Refusal, type Row, text, type Text, Time, useAddress, type Words,
} from "../shared";

/** An event of the audit. Its status has the fields of audit.k8s.io/v1. */
export interface AuditEvent {
  metadata: Meta;
  status: {
    verb: string; requestURI: string; stageTimestamp: string; userAgent?: string; sourceIPs?: string[];
    user: { username?: string; uid?: string; extra?: Record<string, string[]> };
    objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string };
    responseStatus?: { code?: number; reason?: string; message?: string };
  };
}

const path = `${group}/auditevents`;
const words: Words = {
  title: "audit", lead: "auditLead", count: "entries", countOne: "entriesOne", countFiltered: "entriesFiltered", empty: "auditEmpty",
};
/** A page of the list has this many rows. */
const pageSize = 100;
/** So many pages without an event are read on, before somebody is asked. */
const emptyPages = 5;

/** Reads events when it is asked to: each request is itself an event. */
function still(selector: () => string): ReturnType<typeof live<AuditEvent>> {
  const columns = signal<Column[]>([]);
  const rows = signal<Row<AuditEvent>[]>([]);
  const more = signal("");
  const mode = signal<Mode>("still");
  const problem = signal<Refusal | null>(null);
  const loaded = signal(false);
  let current: AbortController | null = null;
  async function read(from: string) {
    current?.abort();
    const reading = (current = new AbortController());
    if (from === "") more.value = "";
    try {
      let place = from;
      const found: Row<AuditEvent>[] = [];
      for (let pages = 0; pages < emptyPages && found.length === 0; pages++) {
        const fieldSelector = selector();
        const table = await list<AuditEvent>(
          path, { limit: String(pageSize), ...(fieldSelector && { fieldSelector }), ...(place && { continue: place }) }, reading.signal,
        );
        found.push(...(table.rows ?? []));
        if (table.columnDefinitions) columns.value = table.columnDefinitions;
        place = table.metadata?.continue ?? "";
        if (place === "") break;
      }
      batch(() => {
        rows.value = from === "" ? found : [...rows.value, ...found];
        more.value = place;
        problem.value = null;
        loaded.value = true;
      });
    } catch (failure) {
      if (reading.signal.aborted) return;
      batch(() => {
        problem.value = asRefusal(failure);
        if (from === "") rows.value = [];
      });
    }
  }
  const begin = () => {
    void read("");
    return () => current?.abort();
  };
  return { columns, rows, more, mode, problem, loaded, begin, refresh: () => read(""), next: () => read(more.value), resume: () => undefined };
}

/** The filters, by their names in the address, with the field of the selector. */
const filters: [name: string, field: string, label: Text, type: "text" | "datetime-local"][] = [
  ["user", "user", "auditUser", "text"], ["verb", "verb", "auditVerb", "text"], ["resource", "resource", "auditResource", "text"],
  ["object", "name", "auditName", "text"], ["code", "code", "auditCode", "text"],
  ["from", "after", "auditAfter", "datetime-local"], ["to", "before", "auditBefore", "datetime-local"],
];

/** A value as a field selector has it. */
const escaped = (value: string) => value.replace(/[\\,=]/g, "\\$&");

/** The event as sinks store it, on one line. */
const line = (event: AuditEvent) => JSON.stringify({ kind: "Event", apiVersion: "audit.k8s.io/v1", ...event.status });

function One({ event, close }: { event: AuditEvent; close: () => void }) {
  const { verb, requestURI, stageTimestamp, userAgent, sourceIPs = [], user, objectRef, responseStatus } = event.status;
  const key = Object.entries(user.extra ?? {}).find(([name]) => name.endsWith("/access-key"))?.[1].join(", ");
  const refused = (responseStatus?.code ?? 0) >= 400;
  return (
    <Dialog title={text("auditEvent")} close={close} wide>
      <dl>
        <Fact name={text("auditTime")}><Time of={stageTimestamp} none="" /></Fact>
        <Fact name={text("auditUser")}>{user.username}</Fact>
        {key && <Fact name={text("accessKey")}>{key}</Fact>}
        <Fact name={text("auditSource")}>{sourceIPs.join(", ")}</Fact>
        <Fact name={text("userAgent")}>{userAgent}</Fact>
        <Fact name={text("auditRequest")}>{verb} <code>{requestURI}</code></Fact>
        <Fact name={text("auditResult")}>{responseStatus?.code} {responseStatus?.reason}</Fact>
        {responseStatus?.message && <Fact name={text("auditReason")}>{responseStatus.message}</Fact>}
      </dl>
      {refused && objectRef?.resource && user.uid !== undefined && user.uid === person.value?.uid && (
        <Preview
          scope="" ready title="auditWhy"
          asks={{
            verb, resource: objectRef.resource + (objectRef.subresource ? `/${objectRef.subresource}` : ""),
            namespace: objectRef.namespace ?? "", name: objectRef.name ?? "",
          }}
        />
      )}
      <h3>{text("auditJson")}</h3>
      <pre tabIndex={0}>{JSON.stringify(event.status, null, 2)}</pre>
      <div class="buttons">
        <Copy what={() => line(event)} />
        <span class="room" />
        <button type="button" class="primary" onClick={close}>{text("close")}</button>
      </div>
    </Dialog>
  );
}

/** The events that the caller may see. */
export function Audit() {
  const query = new URLSearchParams(location.search);
  // What is typed, and what was asked for.
  const typed = Object.fromEntries(filters.map(([name]) => [name, useSignal(query.get(name) ?? "")]));
  const refused = useSignal(query.get("refused") ?? "");
  const asked = useSignal("");
  const address = useAddress({ ...typed, refused });
  const { opened } = address;
  function selector(): string {
    const terms = filters.flatMap(([name, field, , type]) => {
      const value = typed[name]!.value.trim();
      if (value === "" || (field === "code" && refused.value)) return [];
      return [`${field}=${escaped(type === "text" ? value : new Date(value).toISOString())}`];
    });
    asked.value = [...terms, ...(refused.value ? ["code=4xx"] : [])].join(",");
    return asked.value;
  }
  const events = useMemo(() => still(selector), []);
  const event = events.rows.value.find((row) => row.object.metadata.name === opened.value)?.object;
  return (
    <>
      <List
        of={events} words={words} address={address} command={`kubectl get auditevents${asked.value ? ` --field-selector ${quoted(asked.value)}` : ""}`}
        off={(one) => (one.status.responseStatus?.code ?? 0) >= 400}
        buttons={events.rows.value.length > 0 && (
          <button type="button" onClick={() => download("audit.jsonl", events.rows.value.map((row) => `${line(row.object)}\n`).join(""))}>{text("auditExport")}</button>
        )}
      >
        <form class="filters" onSubmit={(event) => { event.preventDefault(); void events.refresh(); }}>
          {filters.map(([name, , label, type]) => (
            <label>{text(label)}
              {type === "text" ? (
                <input
                  value={typed[name]!.value} autocapitalize="off" spellcheck={false} disabled={name === "code" && refused.value !== ""}
                  onInput={(event) => (typed[name]!.value = event.currentTarget.value)}
                />
              ) : <input type={type} value={typed[name]!.value} onInput={(event) => (typed[name]!.value = event.currentTarget.value)} />}
            </label>
          ))}
          <label class="choice">
            <input type="checkbox" checked={refused.value !== ""} onChange={(event) => (refused.value = event.currentTarget.checked ? "yes" : "")} />{text("auditRefused")}
          </label>
          <button class="primary">{text("auditSearch")}</button>
        </form>
      </List>
      {event && <One event={event} close={() => (opened.value = "")} />}
    </>
  );
}
