import { Refusal } from "../api";
import { text } from "../texts";

/** What the API has refused, in its own words, with the fields that are wrong. */
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

/** Returns what a refusal says, in one sentence of the API. */
export function messageOf(refusal: Refusal): string {
  return refusal.code === 0 ? text("problem.network") : refusal.message;
}

/** Returns a failure as a Refusal. */
export function asRefusal(failure: unknown): Refusal {
  return failure instanceof Refusal ? failure : new Refusal(0, String(failure));
}
