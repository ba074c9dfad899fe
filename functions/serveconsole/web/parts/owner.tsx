import { useSignal } from "@preact/signals";
import type { Refusal } from "../api";
import type { Owner } from "../person";
import { text, type Text } from "../texts";
import { Field } from "./field";

const labels = { team: "owner.team", user: "owner.user", none: "owner.choiceNone" } as const;

/** The owner that is chosen in a form. */
export function useOwnerChoice(defaultKind: keyof typeof labels, owner?: Owner) {
  const kind = useSignal<keyof typeof labels>(owner?.team ? "team" : owner?.user ? "user" : defaultKind);
  const name = useSignal(owner?.team ?? owner?.user ?? "");
  return { kind, name, owner: (): Owner | null => (kind.value === "none" ? null : { [kind.value]: name.value.trim() }) };
}

/** The field of an owner. */
export function OwnerField({ choice, legend, kinds, refusal }: { choice: ReturnType<typeof useOwnerChoice>; legend: Text; kinds: (keyof typeof labels)[]; refusal: Refusal | null }) {
  const { kind, name } = choice;
  return (
    <fieldset>
      <legend>{text(legend)}</legend>
      <div class="choices">
        {kinds.map((option) => (
          <label class="choice">
            <input type="radio" name="owner" checked={kind.value === option} onChange={() => (kind.value = option)} />
            {text(labels[option])}
          </label>
        ))}
      </div>
      {kind.value !== "none" && <Field label={text("owner.name")} path="spec.owner" refusal={refusal} value={name.value} set={(to) => (name.value = to)} required />}
    </fieldset>
  );
}
