import { again, session } from "../api";
import { person } from "../person";
import { text } from "../texts";
import { clock, distance, now } from "../times";

/** So long before the end of the session, in milliseconds, people are told. */
const notice = 5 * 60_000;

/** Says when the session ends, in time to sign in again before what is typed meets the end. */
export function Ending() {
  const end = person.value?.accessKeyExpirationTimestamp;
  const left = end ? Date.parse(end) - Math.max(now.value, Date.now()) : Infinity;
  return (
    <div role="status">
      {end && left < notice && session.value === "in" && !again.value && (
        <div class="ending">
          <p>{left > 0 ? text("sessionEnds", { time: clock(end), when: distance(end) }) : text("sessionOver", { time: clock(end) })}</p>
          <button type="button" onClick={() => (again.value = true)}>{text("signInAgainAsk")}</button>
        </div>
      )}
    </div>
  );
}
