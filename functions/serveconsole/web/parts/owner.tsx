import { useSignal } from "@preact/signals";
import type { Refusal } from "../api";
import type { Owner } from "../person";
import { text, type Text } from "../texts";
import { Field } from "./field";

const labels = { self: "owner.self", team: "owner.team", user: "owner.user", none: "owner.choiceNone" } as const;
type OwnerKind = keyof typeof labels;

/** The owner that is chosen in a form. Self is the caller, whom the form does not name. */
export function useOwnerChoice(defaultKind: OwnerKind, owner?: Owner) {
  const kind = useSignal<OwnerKind>(owner?.team ? "team" : owner?.user ? "user" : defaultKind);
  const name = useSignal(owner?.team ?? owner?.user ?? "");
  return { kind, name, owner: (): Owner | null => (kind.value === "none" || kind.value === "self" ? null : { [kind.value]: name.value.trim() }) };
}

/** The field of an owner. Path is the field of the object that names the owner: spec.owner, or a field for each kind. */
export function OwnerField({ choice, legend, kinds, refusal, path = "spec.owner" }: {
  choice: ReturnType<typeof useOwnerChoice>; legend: Text; kinds: OwnerKind[]; refusal: Refusal | null; path?: string;
}) {
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
      {(kind.value === "team" || kind.value === "user") && (
        <Field
          key={kind.value} label={text("owner.name")} path={path} refusal={refusal} value={name.value} set={(to) => (name.value = to)} required
          names={{ resource: kind.value === "team" ? "teams" : "users" }}
        />
      )}
    </fieldset>
  );
}
