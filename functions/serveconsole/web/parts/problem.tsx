import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { Refusal } from "../api";
import { text, type Text } from "../texts";

/** The titles of refusals, by the code of the response. */
const titles: Record<number, Text> = {
  [-1]: "problem.page", 0: "problem.unreached", 400: "problem.invalid", 401: "problem.unauthenticated", 403: "problem.forbidden", 404: "problem.absent", 409: "problem.conflict",
  410: "problem.gone", 422: "problem.invalid", 429: "problem.tooMany", 501: "problem.notOffered", 502: "problem.unavailable", 503: "problem.unavailable", 504: "problem.unavailable",
};

/** Returns a title that says what a refusal is. */
function titleOf({ code }: Refusal): Text {
  return titles[code] ?? (code >= 500 ? "problem.server" : "problem.failed");
}

/** A refusal in the words of the API, with the fields of its causes. Children replace the line that says when to try again. */
export function Problem({ refusal, children }: { refusal: Refusal | null; children?: ComponentChildren }) {
  return (
    <div aria-live="assertive">
      {refusal && (
        <div class="problem" role="alert">
          <strong>{text(titleOf(refusal))}</strong>
          {refusal.causes.length > 1 || refusal.causes[0]?.field ? (
            <ul>
              {refusal.causes.map((cause) => (
                <li>
                  {cause.field && <code>{cause.field}</code>} {cause.message}
                </li>
              ))}
            </ul>
          ) : (
            <p>{messageOf(refusal)}</p>
          )}
          {children ?? (refusal.retryAfter > 0 && <p>{text("problem.retryAfter", { seconds: refusal.retryAfter })}</p>)}
        </div>
      )}
    </div>
  );
}

/** Says in how many seconds something is tried again, and counts them down. The text has one place, {seconds}. Assistive technologies are told once. */
export function Countdown({ end, label }: { end: number; label: Text }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => { now.value = Date.now(); }, 1000);
    return () => clearInterval(timer);
  }, []);
  return <span role="timer">{text(label, { seconds: Math.max(1, Math.ceil((end - Math.max(now.value, Date.now())) / 1000)) })}</span>;
}

/** A refusal of what a page needs before it can show anything, with a button that tries again. If the API has said when, it is tried again then. */
export function RetryProblem({ refusal, retry }: { refusal: Refusal; retry: () => void }) {
  const end = Date.now() + 1000 * refusal.retryAfter;
  const retryTime = useSignal(end);
  useEffect(() => {
    retryTime.value = end;
    if (refusal.retryAfter === 0) return;
    const timer = setTimeout(retry, 1000 * refusal.retryAfter);
    return () => clearTimeout(timer);
  }, [refusal]);
  return (
    <Problem refusal={refusal}>
      <div class="buttons start retry">
        <button type="button" onClick={retry}>{text("action.tryAgain")}</button>
        {refusal.retryAfter > 0 && <Countdown end={retryTime.value} label="problem.retryAfter" />}
      </div>
    </Problem>
  );
}

/** Returns the message of a refusal. */
export function messageOf(refusal: Refusal): string {
  return refusal.code === 0 ? text("problem.network") : refusal.message;
}

/** Returns a failure as a Refusal. */
export function asRefusal(failure: unknown): Refusal {
  return failure instanceof Refusal ? failure : new Refusal(-1, String(failure));
}
