import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { text, type Text } from "../texts";

/** Asks how long a credential lasts, in seconds. */
export function Lifetime({ of, offered, children }: { of: Signal<number>; offered: [number, Text][]; children?: ComponentChildren }) {
  return (
    <fieldset>
      <legend>{text("createLifetime")}</legend>
      <div class="choices">
        {offered.map(([seconds, label]) => (
          <label class="choice">
            <input type="radio" name="ttl" checked={of.value === seconds} onChange={() => (of.value = seconds)} />
            {text(label)}
          </label>
        ))}
      </div>
      {children}
    </fieldset>
  );
}
