import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { text, type Text } from "../texts";

/** A lifetime in seconds, with its text, and the count in the text. */
export type LifetimeChoice = [seconds: number, label: Text, count?: number];

/** The field of the lifetime of a credential, in seconds. */
export function Lifetime({ seconds, choices, children }: { seconds: Signal<number>; choices: LifetimeChoice[]; children?: ComponentChildren }) {
  return (
    <fieldset>
      <legend>{text("lifetime.title")}</legend>
      <div class="choices">
        {choices.map(([choice, label, count = 0]) => (
          <label class="choice">
            <input type="radio" name="ttl" checked={seconds.value === choice} onChange={() => (seconds.value = choice)} />
            {text(label, { count })}
          </label>
        ))}
      </div>
      {children}
    </fieldset>
  );
}
