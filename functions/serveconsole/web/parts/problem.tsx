import { Refusal } from "../api";
import { text } from "../texts";

/** What the API has refused, in its own words, with the fields that are wrong. */
export function Problem({ of }: { of: Refusal | null }) {
  return (
    <div aria-live="assertive">
      {of && (
        <div class="problem" role="alert">
          <strong>{text("failed")}</strong>
          {of.causes.length > 1 || of.causes[0]?.field ? (
            <ul>
              {of.causes.map((cause) => (
                <li>
                  {cause.field && <code>{cause.field}</code>} {cause.message}
                </li>
              ))}
            </ul>
          ) : (
            <p>{messageOf(of)}</p>
          )}
          {of.retryAfter > 0 && <p>{text("retryAfter", { seconds: of.retryAfter })}</p>}
        </div>
      )}
    </div>
  );
}

/** Returns what a refusal says, in one sentence of the API. */
export function messageOf(of: Refusal): string {
  return of.code === 0 ? text("network") : of.message;
}

/** Returns a failure as a Refusal. */
export function asRefusal(failure: unknown): Refusal {
  return failure instanceof Refusal ? failure : new Refusal(0, String(failure));
}
