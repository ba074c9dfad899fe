import type { ComponentChildren } from "preact";
import { distance, exact } from "../times";

/** A line of a list of facts. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** A time, in the zone of the reader, and how far it is. */
export function Time({ of, none }: { of?: string; none: string }) {
  return of ? <time dateTime={of} title={exact(of)}>{exact(of)} ({distance(of)})</time> : <>{none}</>;
}
