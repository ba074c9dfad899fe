import { batch, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import {
  AbsentDialog, ask, asRefusal, Command, CopyButton, Dialog, download, Fact, formatDateTime, formatDistance, home, isAdmin, may, Name, person, Problem, quoteForShell, Refusal, ScopePreview, text, type Text, Time,
  useAddress,
} from "../shared";
import { accessKeyOf, type AuditEvent, escapeSelectorValue, eventsPath, readEvents, requestParts, requestText, requestWords, resourceOf, wasRefused } from "../kinds/auditevent";
import { Bars } from "../parts/bars";
import { NameInput, type NameSource } from "../parts/namelist";
import { Outcome } from "../parts/outcome";
import { useReading } from "../parts/reading";
import { Skeleton } from "../parts/skeleton";
import { type Bar, countInBars, stepOf } from "../parts/timebars";

/** How many events a page has. */
const pageSize = 100;

/** Which requests are shown, with the terms of the selector. Changes leave out reads, what the schedules run every minute, and evaluations, which store nothing. */
const choices: [value: string, label: Text, terms: string[]][] = [
  ["", "audit.changes", [..."get list watch head options run".split(" ").map((verb) => `verb!=${verb}`), "resource!=syncpatchevaluations"]],
  ["all", "audit.all", []],
  ["refused", "audit.refusals", ["code=4xx"]],
];

/** The filters whose values are exact names, with the resource whose names are offered. */
const namedResources: Record<string, NameSource["resource"]> = { user: "users", object: "virtualclusterinstances", key: "ownedaccesskeys" };
const offeredResources: NameSource["resource"][] = ["projects", "virtualclusterinstances", "teams", "users", "ownedaccesskeys"];
const exampleNames: Record<string, Text> = { user: "audit.userExample", object: "audit.nameExample", key: "audit.keyExample" };

/** The filters that are texts, by their names in the address, with the field of the selector. First are those that are always shown. */
const filters: [name: string, field: string, label: Text, first?: boolean][] = [
  ["user", "user", "audit.user", true], ["object", "name", "audit.name", true], ["key", "accessKey", "signin.accessKey", true],
  ["verb", "verb", "audit.verb"], ["resource", "resource", "audit.resource"], ["namespace", "namespace", "field.namespace"], ["code", "code", "audit.code"],
];
/** The bounds of the time, by their names in the address. */
const bounds: [name: "from" | "to", label: Text][] = [["from", "audit.after"], ["to", "audit.before"]];

const hour = 3_600_000;
/** Periods until now, by their names in the address. */
const periods: [name: string, label: Text, length: number][] = [
  ["1h", "audit.lastHour", hour], ["24h", "audit.lastDay", 24 * hour], ["7d", "audit.lastWeek", 7 * 24 * hour], ["30d", "audit.lastMonth", 30 * 24 * hour],
];

/** Returns a time of the address in UTC. Empty: it is no time. */
const normalizeTime = (time: string) => (Number.isNaN(Date.parse(time)) ? "" : new Date(time).toISOString());

/** Returns a time as an input has it, in the local time zone. */
function localTime(time: string): string {
  if (!time) return "";
  const date = new Date(time);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Returns the event as sinks store it, on one line. */
const line = (event: AuditEvent) => JSON.stringify({ kind: "Event", apiVersion: "audit.k8s.io/v1", ...event.status });

/** What the filters narrow: values by the names of filters. */
type Values = Record<string, string>;

/** What has been read. */
interface Reading {
  events: AuditEvent[];
  /** Where the events begin that are not read yet. Empty: there are none. */
  position: string;
  /** The selector, and the time at which it was made. */
  selector: string;
  time: number;
}

/** Returns an event that is read, or reads it: filters may leave out the one that the address opens. Undefined: none is opened, or it is not known yet. */
function useEvent(name: string, reading: Reading | null, failed: boolean): AuditEvent | Refusal | undefined {
  const other = useSignal<{ name: string; event: AuditEvent | Refusal } | null>(null);
  const shown = name ? reading?.events.find((event) => event.metadata.name === name) : undefined;
  const lookup = name !== "" && !shown && (reading !== null || failed);
  useEffect(() => {
    if (!lookup) return;
    const current = new AbortController();
    ask<AuditEvent>(`${eventsPath}/${encodeURIComponent(name)}`, { signal: current.signal }).catch(asRefusal).then((event) => {
      if (!current.signal.aborted) other.value = { name, event };
    });
    return () => current.abort();
  }, [lookup, name]);
  return shown ?? (lookup && other.value?.name === name ? other.value.event : undefined);
}

/** A button that narrows the events to one value. */
function Only({ what, narrow }: { what: string; narrow: () => void }) {
  return <button type="button" class="link" aria-label={text("audit.onlyOf", { what })} onClick={narrow}>{text("audit.only")}</button>;
}

function EventDetails({ event, close, narrow }: { event: AuditEvent; close: () => void; narrow: (values: Values) => void }) {
  const { verb, requestURI, stageTimestamp, userAgent, sourceIPs = [], user, objectRef, responseStatus } = event.status;
  const key = accessKeyOf(event);
  const { resource = "", namespace = "", name = "" } = objectRef ?? {};
  const object = [namespace, resource, name].filter(Boolean).join("/");
  return (
    <Dialog title={requestWords(event)} close={close} sheet>
      <dl>
        <Fact name={text("audit.time")}><Time instant={stageTimestamp} none="" /></Fact>
        <Fact name={text("audit.user")}>{user.username} {user.username && <Only what={user.username} narrow={() => narrow({ user: user.username! })} />}</Fact>
        {key && (
          <Fact name={text("signin.accessKey")}>
            <a href={`${home}/keys?${new URLSearchParams({ name: key })}`}>{key}</a> <Only what={key} narrow={() => narrow({ key })} />
          </Fact>
        )}
        {name && <Fact name={text("audit.name")}>{object} <Only what={object} narrow={() => narrow({ object: name, resource, namespace })} /></Fact>}
        <Fact name={text("audit.source")}>{sourceIPs.join(", ")}</Fact>
        <Fact name={text("field.userAgent")}>{userAgent}</Fact>
        <Fact name={text("audit.request")}>{verb} <code>{requestURI}</code></Fact>
        <Fact name={text("audit.result")}><Outcome event={event} /> {responseStatus?.code} {responseStatus?.reason}</Fact>
        {responseStatus?.message && <Fact name={text("audit.reason")}>{responseStatus.message}</Fact>}
        <Fact name={text("audit.event")}>{event.metadata.name}</Fact>
      </dl>
      {wasRefused(event) && resource && user.uid !== undefined && user.uid === person.value?.uid && (
        <ScopePreview scope="" ready title="audit.permittedNow" asks={{ verb, resource: resourceOf(event), namespace, name }} />
      )}
      <h3>{text("audit.json")}</h3>
      <pre tabIndex={0}>{JSON.stringify(event.status, null, 2)}</pre>
      <div class="buttons">
        <CopyButton content={() => line(event)} />
      </div>
    </Dialog>
  );
}

/** The request of an event in words, in one line. Of a long name, the middle is cut. */
function Words({ event }: { event: AuditEvent }) {
  const [before, name, after] = requestParts(event);
  return name ? <span class="words"><span>{`${before} `}</span><Name name={name} />{after && <span>{` ${after}`}</span>}</span> : <>{[before, after].filter(Boolean).join(" ")}</>;
}

/** The table of events. A click on a row opens its event, unless it selects text. */
function Events({ events, addressOf, open }: { events: AuditEvent[]; addressOf: (name: string) => string; open: (name: string) => void }) {
  return (
    <div class="table" tabIndex={0} role="region" aria-label={text("page.audit")}>
      <table class="events">
        <thead><tr>{(["audit.when", "audit.user", "audit.what", "audit.result"] as const).map((label) => <th scope="col">{text(label)}</th>)}</tr></thead>
        <tbody>
          {events.map((event) => {
            const { metadata: { name }, status: { stageTimestamp, requestURI, user, responseStatus } } = event;
            const key = accessKeyOf(event);
            const time = formatDateTime(stageTimestamp);
            return (
              <tr
                key={name}
                onClick={({ target }) => { if (target instanceof Element && !target.closest("a") && getSelection()?.isCollapsed !== false) open(name); }}
              >
                <th scope="row">
                  <a
                    href={addressOf(name)} aria-label={`${time}: ${requestWords(event)}`}
                    onClick={(click) => {
                      if (click.ctrlKey || click.metaKey || click.shiftKey || click.altKey) return;
                      click.preventDefault();
                      open(name);
                    }}
                  >
                    {time}
                  </a>
                  <span class="second">{formatDistance(stageTimestamp)}</span>
                </th>
                <td class="by"><Name name={user.username ?? ""} />{key && <span class="second" title={text("signin.accessKey")}><Name name={key} /></span>}</td>
                <td class="what" title={requestText(event)}><Words event={event} />{!requestWords(event).endsWith(requestURI) && <span class="second"><code><Name name={requestText(event)} /></code></span>}</td>
                <td class="code"><Outcome event={event} /><span class="second">{responseStatus?.code} {wasRefused(event) && responseStatus?.reason}</span></td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {events.length === 0 && <p class="quiet pad">{text("audit.empty")}</p>}
    </div>
  );
}

/** The requests over time, as far as they are read. A bar narrows the time. */
function Timeline({ reading: { events, position, time }, from, to, narrow }: { reading: Reading; from: number; to: number; narrow: (values: Values) => void }) {
  const oldest = Date.parse(events.at(-1)!.status.stageTimestamp);
  const newest = Date.parse(events[0]!.status.stageTimestamp);
  const first = position === "" && from > 0 ? Math.min(from, oldest) : oldest;
  const last = Math.max(newest, Math.min(to - 1, time));
  const step = stepOf(last - first);
  const bars = countInBars(step, first, last, events.map((event) => ({ instant: Date.parse(event.status.stageTimestamp), isUpper: wasRefused(event) })));
  const choose = ({ start, end }: Bar) => narrow({ from: new Date(start).toISOString(), to: new Date(end).toISOString(), last: "" });
  return <Bars bars={bars} step={step} choose={choose} />;
}

/** The events that the caller may see. Each reading is itself an event: the page reads when a person asks for it. */
export function Audit() {
  const query = new URLSearchParams(location.search);
  const parameter = (name: string) => useSignal(query.get(name) ?? "");
  // An address that names a key or a code is about all requests, unless it says which.
  const shown = useSignal(query.get("show") ?? (query.has("refused") ? "refused" : query.has("key") || query.has("code") ? "all" : ""));
  const values = { ...Object.fromEntries(filters.map(([name]) => [name, parameter(name)])), last: parameter("last") };
  const times = { from: useSignal(normalizeTime(query.get("from") ?? "")), to: useSignal(normalizeTime(query.get("to") ?? "")) };
  const parameters: Record<string, ReturnType<typeof parameter>> = { show: shown, ...values, ...times };
  const address = useAddress(parameters);
  const { openedName } = address;
  /** What is typed and not yet asked for. */
  const drafts = useSignal<Values>({});
  const more = useSignal(false);
  const chips = useRef<HTMLDivElement>(null);
  const moreButton = useRef<HTMLButtonElement>(null);
  /** Where the focus goes, because what had it may be gone. */
  const focusNext = useRef<"time" | "chips" | null>(null);
  const applied = JSON.stringify(Object.values(parameters).map(({ value }) => value));
  const period = periods.find(([name]) => name === parameters.last!.value)?.[2] ?? 0;

  function selector(time: number): string {
    const terms = filters.flatMap(([name, field]) => {
      const value = parameters[name]!.value.trim();
      return value === "" ? [] : [`${field}=${escapeSelectorValue(value)}`];
    });
    if (period > 0) terms.push(`after=${new Date(time - period).toISOString()}`);
    // The bound of a selector is not in what it selects, and events have microseconds.
    if (times.from.value) terms.push(`after=${new Date(Date.parse(times.from.value) - 1).toISOString().replace("Z", "999Z")}`);
    if (times.to.value) terms.push(`before=${times.to.value}`);
    return [...terms, ...(choices.find(([value]) => value === shown.value) ?? choices[0]!)[2]].join(",");
  }
  // The newest events that are selected, or those after the last ones that were read.
  const { busy, reading, problem, read } = useReading<Reading>(async (last, signal) => {
    const time = last?.time ?? Date.now();
    const selected = last?.selector ?? selector(time);
    const { events, position } = await readEvents(selected, pageSize, last?.position ?? "", signal);
    return { events: [...(last?.events ?? []), ...events], position, selector: selected, time };
  });
  useEffect(() => { document.title = `${text("page.audit")} · ${text("app.product")}`; }, []);
  useEffect(() => { void read(null); }, [applied]);
  useLayoutEffect(() => {
    const buttons = chips.current?.querySelectorAll("button");
    if (focusNext.current) (focusNext.current === "time" ? buttons?.[buttons.length - 1] : buttons?.[0] ?? moreButton.current)?.focus();
    focusNext.current = null;
  }, [applied]);
  /** Applies what is typed, and some values. */
  const set = (next: Values) => batch(() => {
    for (const [name, value] of Object.entries({ ...drafts.value, ...next })) parameters[name]!.value = value;
    drafts.value = {};
  });
  function narrow(next: Values) {
    focusNext.current = "from" in next ? "time" : "chips";
    batch(() => {
      openedName.value = "";
      set(next);
    });
  }
  function submit() {
    const before = applied;
    set({});
    if (JSON.stringify(Object.values(parameters).map(({ value }) => value)) === before) void read(null);
  }
  const valueOf = (name: string) => drafts.value[name] ?? parameters[name]!.value;
  /** Objects are those of the resource that is chosen, if its names can be offered. */
  const sourceOf = (name: string) => (name === "object" && offeredResources.find((resource) => resource === valueOf("resource").trim())) || namedResources[name]!;
  const draft = (name: string, value: string) => { drafts.value = { ...drafts.value, [name]: value }; };
  const timeChip = times.from.value || times.to.value
    ? [times.from.value ? formatDateTime(times.from.value) : "", times.to.value ? formatDateTime(times.to.value) : ""].join(" – ").trim()
    : period > 0 ? text(periods.find(([name]) => name === parameters.last!.value)![1]) : "";
  const active: [label: string, value: string, names: string[]][] = [
    ...filters.filter(([name]) => parameters[name]!.value !== "").map(([name, , label]): [string, string, string[]] => [text(label), parameters[name]!.value, [name]]),
    ...(timeChip ? [[text("audit.time"), timeChip, ["last", "from", "to"]] as [string, string, string[]]] : []),
  ];
  const opened = useEvent(openedName.value, reading.value, problem.value !== null);
  const close = () => { openedName.value = ""; };
  const { events, position, selector: selected } = reading.value ?? { events: [], position: "", selector: selector(Date.now()) };
  const oldest = events.at(-1)?.status.stageTimestamp;
  const coverage = position === "" ? text(events.length === 1 ? "list.countOne" : "list.count", { count: events.length })
    : oldest ? text("audit.partial", { count: events.length, time: formatDateTime(oldest) }) : text("list.emptySoFar");
  return (
    <>
      <div class="title">
        <div>
          <h1>{text("page.audit")}</h1>
          <p class="quiet">{text("audit.lead")}</p>
        </div>
        <fieldset class="segments">
          <legend class="hidden">{text("audit.show")}</legend>
          {choices.map(([value, label]) => (
            <label>
              <input type="radio" class="unseen" name="show" checked={shown.value === value} onChange={() => set({ show: value })} />{text(label)}
            </label>
          ))}
        </fieldset>
      </div>
      <form class={more.value ? "filters open" : "filters"} onSubmit={(event) => { event.preventDefault(); submit(); }}>
        {filters.map(([name, , label, first]) => (
          <label class={first ? "first" : "rest"}>{text(label)}
            {namedResources[name] ? (
              <NameInput type="search" source={{ resource: sourceOf(name) }} placeholder={text(exampleNames[name]!)} value={valueOf(name)} onInput={(event) => draft(name, event.currentTarget.value)} />
            ) : <input type="search" value={valueOf(name)} autocapitalize="off" spellcheck={false} onInput={(event) => draft(name, event.currentTarget.value)} />}
          </label>
        ))}
        {bounds.map(([name, label]) => (
          <label class="rest">{text(label)}
            <input
              type="datetime-local" value={localTime(valueOf(name))}
              onInput={(event) => { drafts.value = { ...drafts.value, last: "", [name]: normalizeTime(event.currentTarget.value) }; }}
            />
          </label>
        ))}
        <label class="first">{text("audit.time")}
          <select value={times.from.value || times.to.value ? "own" : parameters.last!.value} onChange={(event) => set({ last: event.currentTarget.value, from: "", to: "" })}>
            <option value="">{text("audit.anyTime")}</option>
            {periods.map(([name, label]) => <option value={name}>{text(label)}</option>)}
            {(times.from.value || times.to.value) && <option value="own" disabled>{text("audit.ownTime")}</option>}
          </select>
        </label>
        <span class="buttons">
          <button class="primary">{text("audit.search")}</button>
          <button ref={moreButton} type="button" aria-expanded={more.value} onClick={() => (more.value = !more.value)}>{text(more.value ? "audit.fewerFilters" : "audit.moreFilters")}</button>
        </span>
      </form>
      {active.length > 0 && (
        <div ref={chips} class="chips" role="group" aria-label={text("audit.filters")}>
          {active.map(([label, value, names]) => (
            <button
              key={names[0]} type="button" class="remove" aria-label={text("audit.removeFilter", { filter: `${label}: ${value}` })}
              onClick={() => { focusNext.current = "chips"; set(Object.fromEntries(names.map((name) => [name, ""]))); }}
            >
              <span class="quiet">{label}</span> {value}
            </button>
          ))}
        </div>
      )}
      {problem.value?.code === 501 ? (
        <div class="card" role="status">
          <p>{text("audit.notOffered")}</p>
          {isAdmin() && may("update", "configs") && <p><a href={`${home}/config`}>{text("audit.configure")}</a></p>}
        </div>
      ) : <Problem refusal={problem.value} />}
      {reading.value && events.length > 0 && (
        <Timeline
          reading={reading.value} narrow={narrow}
          from={times.from.value ? Date.parse(times.from.value) : period > 0 ? reading.value.time - period : 0} to={times.to.value ? Date.parse(times.to.value) : Infinity}
        />
      )}
      <p class="quiet" role="status" aria-busy={busy.value}>{reading.value && coverage}</p>
      {reading.value && events.length === 0 && [...Object.keys(namedResources), "namespace"].some((name) => parameters[name]!.value) && <p class="quiet">{text("audit.exact")}</p>}
      {!reading.value && !problem.value && <Skeleton rows={8} />}
      {reading.value && <Events events={events} addressOf={address.addressOfObject} open={(name) => (openedName.value = name)} />}
      <div class="buttons start more">
        {position !== "" && <button type="button" disabled={busy.value} onClick={() => void read(reading.value)}>{text("list.more")}</button>}
        {events.length > 0 && <button type="button" onClick={() => download("audit.jsonl", events.map((event) => `${line(event)}\n`).join(""))}>{text("audit.export")}</button>}
      </div>
      <Command command={`kubectl get auditevents${selected ? ` --field-selector ${quoteForShell(selected)}` : ""}`} />
      {opened instanceof Refusal ? <AbsentDialog name={openedName.value} refusal={opened} close={close} /> : opened && <EventDetails event={opened} close={close} narrow={narrow} />}
    </>
  );
}
