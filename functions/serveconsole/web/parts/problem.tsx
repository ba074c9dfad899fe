import { Refusal } from "../api";
import { text } from "../texts";

/** A refusal in the words of the API, with the fields of its causes. */
export function Problem({ refusal }: { refusal: Refusal | null }) {
  return (
    <div aria-live="assertive">
      {refusal && (
        <div class="problem" role="alert">
          <strong>{text("problem.failed")}</strong>
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
          {refusal.retryAfter > 0 && <p>{text("problem.retryAfter", { seconds: refusal.retryAfter })}</p>}
        </div>
      )}
    </div>
  );
}

/** Returns the message of a refusal. */
export function messageOf(refusal: Refusal): string {
  return refusal.code === 0 ? text("problem.network") : refusal.message;
}

/** Returns a failure as a Refusal. */
export function asRefusal(failure: unknown): Refusal {
  return failure instanceof Refusal ? failure : new Refusal(0, String(failure));
}
