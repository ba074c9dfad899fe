import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { formatDuration, text, type Text } from "../shared";
import { FieldGroup } from "./field";

/** A lifetime in seconds, with its text, or null for the length alone, and the date at which it ends. */
export type LifetimeChoice = [seconds: number, label: Text | null, date?: string];

/** Returns the text of a lifetime. */
export const lifetimeText = ([seconds, label]: LifetimeChoice) => (label ? text(label) : formatDuration(seconds));

/** The field of the lifetime of a credential, in seconds. */
export function Lifetime({ seconds, choices, path = "spec.ttl", children }: { seconds: Signal<number>; choices: LifetimeChoice[]; path?: string; children?: ComponentChildren }) {
  return (
    <FieldGroup paths={[path, `${path}AfterLastActivity`]} legend={text("lifetime.title")}>
      <div class="choices">
        {choices.map((choice) => (
          <label class="choice">
            <input type="radio" name="ttl" checked={seconds.value === choice[0]} onChange={() => (seconds.value = choice[0])} />
            {lifetimeText(choice)}{choice[2] && <small class="quiet">{choice[2]}</small>}
          </label>
        ))}
      </div>
      {children}
    </FieldGroup>
  );
}
