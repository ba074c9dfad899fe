import { extending, session } from "../api";
import { person } from "../person";
import { text } from "../texts";
import { formatTime, formatDistance, currentTime } from "../times";

/** How long before its end the session notice appears, in milliseconds. */
const noticePeriod = 5 * 60_000;

/** Says when the session ends, early enough to sign in again before a request is refused. */
export function SessionNotice() {
  const expiration = person.value?.accessKeyExpirationTimestamp;
  const remaining = expiration ? Date.parse(expiration) - Math.max(currentTime.value, Date.now()) : Infinity;
  return (
    <div role="status">
      {expiration && remaining < noticePeriod && session.value === "in" && !extending.value && (
        <div class="ending">
          <p>{remaining > 0 ? text("session.ends", { time: formatTime(expiration), when: formatDistance(expiration) }) : text("session.ended", { time: formatTime(expiration) })}</p>
          <button type="button" onClick={() => (extending.value = true)}>{text("session.signInAgain")}</button>
        </div>
      )}
    </div>
  );
}
