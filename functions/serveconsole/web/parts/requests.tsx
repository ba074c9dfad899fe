import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { eventsPath } from "../kinds/auditevent";
import { asRefusal, day, formatDateTime, home, listPages, type Meta, Problem, type Refusal, text } from "../shared";
import { Bars } from "./bars";
import { countInBars, stepOf } from "./timebars";

/** How many days are shown. */
const days = 30;
/** How many events a request asks for, and how many requests there are at most. Each of them is itself an event. */
const pageSize = 500;
const requestLimit = 2;

/** When a request was made, and whether it was refused or failed. */
interface Made {
  instant: number;
  isUpper: boolean;
}

/** What has been read of the events since a time, the newest first. Cut: the audit has older ones. */
interface Reading {
  since: number;
  requests: Made[];
  cut: boolean;
}

/** Reads the outcomes of the requests that the session may see, without their events. */
async function readOutcomes(signal: AbortSignal): Promise<Reading> {
  const since = Date.now() - days * day;
  const requests: Made[] = [];
  let position = "";
  const query = { includeObject: "Metadata", limit: String(pageSize), fieldSelector: `after=${new Date(since).toISOString()}` };
  for await (const { rows = [], columnDefinitions = [], metadata } of listPages<{ metadata: Meta }>(eventsPath, query, { signal, most: requestLimit })) {
    const code = columnDefinitions.findIndex(({ name }) => name === "Code");
    requests.push(...rows.map(({ object, cells }) => ({ instant: Date.parse(object.metadata.creationTimestamp), isUpper: Number(cells[code]) >= 400 })));
    position = metadata?.continue ?? "";
  }
  return { since, requests, cut: position !== "" };
}

/** The requests of the last 30 days, by day. If there are too many to read, it shows the last ones, by a shorter step. Nothing is shown without a store of the audit. */
export function Requests() {
  const reading = useSignal<Reading | null>(null);
  const problem = useSignal<Refusal | null>(null);
  useEffect(() => {
    const current = new AbortController();
    readOutcomes(current.signal).then((read) => (reading.value = read), (failure) => { if (!current.signal.aborted) problem.value = asRefusal(failure); });
    return () => current.abort();
  }, []);
  // The audit is off, cannot be read here, or is not for this session.
  if (problem.value && ![403, 501].includes(problem.value.code)) return <section class="card requests"><Problem refusal={problem.value} /></section>;
  const { since, requests, cut } = reading.value ?? { since: 0, requests: [], cut: false };
  const oldest = requests.at(-1)?.instant;
  if (oldest === undefined) return null;
  const from = cut ? oldest : since;
  const step = stepOf(Date.now() - from);
  return (
    <section class="card requests">
      <Bars bars={countInBars(step, from, Date.now(), requests)} step={step} />
      <p class="quiet">
        {cut ? text("requests.partial", { count: requests.length, time: formatDateTime(new Date(oldest).toISOString()) }) : text("activity.covered", { days, count: requests.length })}
        {" "}<a href={`${home}/audit?${new URLSearchParams({ show: "all", last: `${days}d` })}`}>{text("activity.all")}</a>
      </p>
    </section>
  );
}
