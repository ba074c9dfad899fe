import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type AuditEvent, readEvents, requestText, requestWords, wasRefused } from "../kinds/auditevent";
import { day, formatDateTime, formatDistance, loadTexts, may, Problem, text } from "../shared";
import { Bars } from "./bars";
import { Outcome } from "./outcome";
import { useReading } from "./reading";
import { Skeleton } from "./skeleton";
import { countInBars } from "./timebars";

/** How many days are shown. */
const days = 30;
/** How many events a request asks for, and after how many pages with events the part waits for a click. Each request is itself an event. */
const pageSize = 500;
const pageLimit = 4;
/** How many events are listed. */
const listed = 10;

/** What has been read: the events, the newest first, and where the rest of them begins. Empty: there are no more. */
interface Reading {
  events: AuditEvent[];
  position: string;
}

/**
 * The requests of the last 30 days that a field selector of the audit selects, by day, and the last ones in words. Link is the page that has all of them. Reading
 * the audit is recorded: render this part only when a person asks for it. The part loads its texts itself.
 */
export function Activity({ selector, link }: { selector: string; link: string }) {
  const ready = useSignal(false);
  const since = useRef(0);
  const { busy, reading, problem, read } = useReading<Reading>(async (last, signal) => {
    await loadTexts();
    ready.value = true;
    if (!may("list", "auditevents")) return null;
    if (!last) since.current = Date.now() - days * day;
    const { events, position } = await readEvents([selector, `after=${new Date(since.current).toISOString()}`].filter(Boolean).join(","), pageSize, last?.position ?? "", signal, pageLimit);
    return { events: [...(last?.events ?? []), ...events], position };
  });
  useEffect(() => {
    reading.value = null;
    void read(null);
  }, [selector]);
  if (!ready.value) return problem.value ? <Problem refusal={problem.value} /> : <Skeleton rows={3} />;
  if (!may("list", "auditevents")) return <p class="quiet">{text("activity.forbidden")}</p>;
  // There is no store of the audit, or it cannot be read here.
  if (problem.value?.code === 501) return <p class="quiet">{text("activity.unreadable", { reason: problem.value.message })}</p>;
  const { events, position } = reading.value ?? { events: [], position: "" };
  const oldest = events.at(-1)?.status.stageTimestamp;
  const from = position !== "" && oldest ? Date.parse(oldest) : since.current;
  return (
    <div class="activity" aria-busy={busy.value}>
      <Problem refusal={problem.value} />
      {reading.value === null ? !problem.value && <Skeleton rows={3} /> : (
        <>
          <p class="quiet" role="status">
            {position === "" ? text("activity.covered", { days, count: events.length })
              : oldest ? text("activity.partial", { count: events.length, time: formatDateTime(oldest) }) : text("activity.emptySoFar")}
          </p>
          {events.length > 0 && (
            <>
              <Bars step="day" bars={countInBars("day", from, Date.now(), events.map((event) => ({ instant: Date.parse(event.status.stageTimestamp), isUpper: wasRefused(event) })))} />
              <h3>{text("activity.last")}</h3>
              <ul class="rows">
                {events.slice(0, listed).map((event) => (
                  <li key={event.metadata.name}>
                    <span title={requestText(event)}>{requestWords(event)}<small class="quiet"> {event.status.user.username}</small></span>
                    <Outcome event={event} />
                    <time class="quiet" dateTime={event.status.stageTimestamp} title={formatDateTime(event.status.stageTimestamp)}>{formatDistance(event.status.stageTimestamp)}</time>
                  </li>
                ))}
              </ul>
            </>
          )}
        </>
      )}
      <p class="buttons start">
        {position !== "" && <button type="button" disabled={busy.value} onClick={() => void read(reading.value)}>{text("activity.older")}</button>}
        <a href={link}>{text("activity.all")}</a>
      </p>
    </div>
  );
}
