import { type AuditEvent } from "../kinds/auditevent";
import { Chip, text } from "../shared";

/** The outcome of the request of an event: permitted, refused or failed. */
export function Outcome({ event: { status: { responseStatus } } }: { event: AuditEvent }) {
  const code = responseStatus?.code;
  if (code === undefined) return <Chip kind="off">{text("audit.unknown")}</Chip>;
  return <Chip kind={code < 400 ? "good" : "bad"}>{text(code < 400 ? "bars.permitted" : code < 500 ? "bars.refused" : "audit.failed")}</Chip>;
}
