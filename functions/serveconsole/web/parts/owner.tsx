import { useSignal } from "@preact/signals";
import type { Owner } from "../person";
import { text, type Text } from "../texts";
import { Field, FieldGroup } from "./field";
import { useSettle } from "./form";

const labels = { self: "owner.self", team: "owner.team", user: "owner.user", none: "owner.choiceNone" } as const;
type OwnerKind = keyof typeof labels;

/** The owner that is chosen in a form. Self is the caller, whom the form does not name. */
export function useOwnerChoice(defaultKind: OwnerKind, owner?: Owner) {
  const kind = useSignal<OwnerKind>(owner?.team ? "team" : owner?.user ? "user" : defaultKind);
  const name = useSignal(owner?.team ?? owner?.user ?? "");
  return { kind, name, owner: (): Owner | null => (kind.value === "none" || kind.value === "self" ? null : { [kind.value]: name.value.trim() }) };
}

/** The field of an owner. Paths are the fields of the object that name the owner: spec.owner, or one for each kind. */
export function OwnerField({ choice, legend, kinds, paths = ["spec.owner"] }: { choice: ReturnType<typeof useOwnerChoice>; legend: Text; kinds: OwnerKind[]; paths?: string[] }) {
  const { kind, name } = choice;
  const settle = useSettle();
  const isNamed = kind.value === "team" || kind.value === "user";
  return (
    <FieldGroup paths={isNamed ? [] : paths} legend={text(legend)}>
      <div class="choices">
        {kinds.map((option) => (
          <label class="choice">
            <input type="radio" name="owner" checked={kind.value === option} onChange={() => { kind.value = option; settle(paths); }} />
            {text(labels[option])}
          </label>
        ))}
      </div>
      {isNamed && (
        <Field key={kind.value} label={text("owner.name")} path={paths} value={name.value} set={(to) => (name.value = to)} required names={{ resource: kind.value === "team" ? "teams" : "users" }} />
      )}
    </FieldGroup>
  );
}
