import { batch, computed, signal, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import {
  AbsentDialog, asRefusal, type Column, CopyButton, Dialog, download, Fact, group, list, List, type watchList, type Meta, type Mode, person, ScopePreview, quoteForShell,
  Refusal, type Row, text, type Text, Time, useAddress, useOpened, type ListTexts,
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
const words: ListTexts = {
  title: "page.audit", lead: "audit.lead", count: "list.count", countOne: "list.countOne", countFiltered: "list.countFiltered", empty: "audit.empty",
};
/** How many rows a page of the list has. */
const pageSize = 100;
/** How many pages without an event are read in a row. After that, the page waits for a click. */
const maxEmptyPages = 5;

/** A list that is read on demand alone: each request is itself an event. */
function readOnDemand(selector: () => string): ReturnType<typeof watchList<AuditEvent>> {
  const columns = signal<Column[]>([]);
  const rows = signal<Row<AuditEvent>[]>([]);
  const more = signal("");
  const mode = signal<Mode>("still");
  const problem = signal<Refusal | null>(null);
  const loaded = signal(false);
  let current: AbortController | null = null;
  async function read(start: string) {
    current?.abort();
    const reading = (current = new AbortController());
    if (start === "") more.value = "";
    try {
      let position = start;
      const events: Row<AuditEvent>[] = [];
      for (let pages = 0; pages < maxEmptyPages && events.length === 0; pages++) {
        const fieldSelector = selector();
        const table = await list<AuditEvent>(
          path, { limit: String(pageSize), ...(fieldSelector && { fieldSelector }), ...(position && { continue: position }) }, reading.signal,
        );
        events.push(...(table.rows ?? []));
        if (table.columnDefinitions) columns.value = table.columnDefinitions;
        position = table.metadata?.continue ?? "";
        if (position === "") break;
      }
      batch(() => {
        rows.value = start === "" ? events : [...rows.value, ...events];
        more.value = position;
        problem.value = null;
        loaded.value = true;
      });
    } catch (failure) {
      if (reading.signal.aborted) return;
      batch(() => {
        problem.value = asRefusal(failure);
        if (start === "") rows.value = [];
      });
    }
  }
  const begin = () => {
    void read("");
    return () => current?.abort();
  };
  return {
    columns, rows, more, total: computed(() => rows.value.length), reading: signal(false), mode, problem, retryTime: signal(0), retry: () => undefined, loaded, begin, refresh: () => read(""), next: () => read(more.value), resume: () => undefined,
  };
}

/** The filters, by their names in the address, with the field of the selector. */
const filters: [name: string, field: string, label: Text, type: "text" | "datetime-local"][] = [
  ["user", "user", "audit.user", "text"], ["verb", "verb", "audit.verb", "text"], ["resource", "resource", "audit.resource", "text"],
  ["object", "name", "audit.name", "text"], ["code", "code", "audit.code", "text"],
  ["from", "after", "audit.after", "datetime-local"], ["to", "before", "audit.before", "datetime-local"],
];

/** Escapes a value for a field selector. */
const escapeSelectorValue = (value: string) => value.replace(/[\\,=]/g, "\\$&");

/** Returns the event as sinks store it, on one line. */
const line = (event: AuditEvent) => JSON.stringify({ kind: "Event", apiVersion: "audit.k8s.io/v1", ...event.status });

function EventDetails({ event, close }: { event: AuditEvent; close: () => void }) {
  const { verb, requestURI, stageTimestamp, userAgent, sourceIPs = [], user, objectRef, responseStatus } = event.status;
  const key = Object.entries(user.extra ?? {}).find(([name]) => name.endsWith("/access-key"))?.[1].join(", ");
  const wasRefused = (responseStatus?.code ?? 0) >= 400;
  return (
    <Dialog title={text("audit.event")} close={close} sheet>
      <dl>
        <Fact name={text("audit.time")}><Time instant={stageTimestamp} none="" /></Fact>
        <Fact name={text("audit.user")}>{user.username}</Fact>
        {key && <Fact name={text("signin.accessKey")}>{key}</Fact>}
        <Fact name={text("audit.source")}>{sourceIPs.join(", ")}</Fact>
        <Fact name={text("field.userAgent")}>{userAgent}</Fact>
        <Fact name={text("audit.request")}>{verb} <code>{requestURI}</code></Fact>
        <Fact name={text("audit.result")}>{responseStatus?.code} {responseStatus?.reason}</Fact>
        {responseStatus?.message && <Fact name={text("audit.reason")}>{responseStatus.message}</Fact>}
      </dl>
      {wasRefused && objectRef?.resource && user.uid !== undefined && user.uid === person.value?.uid && (
        <ScopePreview
          scope="" ready title="audit.permittedNow"
          asks={{
            verb, resource: objectRef.resource + (objectRef.subresource ? `/${objectRef.subresource}` : ""),
            namespace: objectRef.namespace ?? "", name: objectRef.name ?? "",
          }}
        />
      )}
      <h3>{text("audit.json")}</h3>
      <pre tabIndex={0}>{JSON.stringify(event.status, null, 2)}</pre>
      <div class="buttons">
        <CopyButton content={() => line(event)} />
      </div>
    </Dialog>
  );
}

/** The events that the caller may see. */
export function Audit() {
  const query = new URLSearchParams(location.search);
  // The values of the filters, and the selector of the events that are shown.
  const values = Object.fromEntries(filters.map(([name]) => [name, useSignal(query.get(name) ?? "")]));
  const refusedOnly = useSignal(query.get("refused") ?? "");
  const selected = useSignal("");
  const address = useAddress({ ...values, refused: refusedOnly });
  const { openedName } = address;
  function selector(): string {
    const terms = filters.flatMap(([name, field, , type]) => {
      const value = values[name]!.value.trim();
      if (value === "" || (field === "code" && refusedOnly.value)) return [];
      return [`${field}=${escapeSelectorValue(type === "text" ? value : new Date(value).toISOString())}`];
    });
    selected.value = [...terms, ...(refusedOnly.value ? ["code=4xx"] : [])].join(",");
    return selected.value;
  }
  const events = useMemo(() => readOnDemand(selector), []);
  const event = useOpened(events, openedName.value, `${path}/${encodeURIComponent(openedName.value)}`);
  return (
    <>
      <List
        list={events} texts={words} address={address} command={`kubectl get auditevents${selected.value ? ` --field-selector ${quoteForShell(selected.value)}` : ""}`}
        isOff={(event) => (event.status.responseStatus?.code ?? 0) >= 400}
        buttons={events.rows.value.length > 0 && (
          <button type="button" onClick={() => download("audit.jsonl", events.rows.value.map((row) => `${line(row.object)}\n`).join(""))}>{text("audit.export")}</button>
        )}
      >
        <form class="filters" onSubmit={(event) => { event.preventDefault(); void events.refresh(); }}>
          {filters.map(([name, , label, type]) => (
            <label>{text(label)}
              {type === "text" ? (
                <input
                  value={values[name]!.value} autocapitalize="off" spellcheck={false} disabled={name === "code" && refusedOnly.value !== ""}
                  onInput={(event) => (values[name]!.value = event.currentTarget.value)}
                />
              ) : <input type={type} value={values[name]!.value} onInput={(event) => (values[name]!.value = event.currentTarget.value)} />}
            </label>
          ))}
          <label class="choice">
            <input type="checkbox" checked={refusedOnly.value !== ""} onChange={(event) => (refusedOnly.value = event.currentTarget.checked ? "yes" : "")} />{text("audit.refused")}
          </label>
          <button class="primary">{text("audit.search")}</button>
        </form>
      </List>
      {event instanceof Refusal ? <AbsentDialog name={openedName.value} refusal={event} close={() => (openedName.value = "")} /> : event && <EventDetails event={event} close={() => (openedName.value = "")} />}
    </>
  );
}
