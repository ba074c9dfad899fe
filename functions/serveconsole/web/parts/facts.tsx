import type { ComponentChildren } from "preact";
import { formatDistance, formatDateTime } from "../times";

/** A name and a value in a list of facts. The value has the direction of what somebody has written. */
export function Fact({ name, children }: { name: ComponentChildren; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd dir="auto">{children}</dd>
    </>
  );
}

/** A time in the local time zone, with its distance from now. */
export function Time({ instant, none }: { instant?: string; none: string }) {
  return instant ? <time dateTime={instant} title={formatDateTime(instant)}>{formatDateTime(instant)} ({formatDistance(instant)})</time> : <>{none}</>;
}
