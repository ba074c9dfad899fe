import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { text, type Text } from "../shared";
import { FieldGroup } from "./field";

/** A lifetime in seconds, with its text, the count in the text, and the date at which it ends. */
export type LifetimeChoice = [seconds: number, label: Text, count?: number, date?: string];

/** The field of the lifetime of a credential, in seconds. */
export function Lifetime({ seconds, choices, path = "spec.ttl", children }: { seconds: Signal<number>; choices: LifetimeChoice[]; path?: string; children?: ComponentChildren }) {
  return (
    <FieldGroup paths={[path, `${path}AfterLastActivity`]} legend={text("lifetime.title")}>
      <div class="choices">
        {choices.map(([choice, label, count = 0, date]) => (
          <label class="choice">
            <input type="radio" name="ttl" checked={seconds.value === choice} onChange={() => (seconds.value = choice)} />
            {text(label, { count })}{date && <small class="quiet">{date}</small>}
          </label>
        ))}
      </div>
      {children}
    </FieldGroup>
  );
}
