import { useSignal } from "@preact/signals";
import type { Refusal } from "../api";
import type { Owned } from "../person";
import { text, type Text } from "../texts";
import { Entry } from "./field";

const labels = { team: "ruleTeam", user: "ruleUser", none: "ownerNobody" } as const;

/** The owner that somebody chooses, one of the kinds. */
export function useOwner(first: keyof typeof labels, of?: Owned) {
  const kind = useSignal<keyof typeof labels>(of?.team ? "team" : of?.user ? "user" : first);
  const name = useSignal(of?.team ?? of?.user ?? "");
  return { kind, name, owner: (): Owned | null => (kind.value === "none" ? null : { [kind.value]: name.value.trim() }) };
}

/** Asks for an owner. */
export function Owner({ of, legend, kinds, problem }: { of: ReturnType<typeof useOwner>; legend: Text; kinds: (keyof typeof labels)[]; problem: Refusal | null }) {
  const { kind, name } = of;
  return (
    <fieldset>
      <legend>{text(legend)}</legend>
      <div class="choices">
        {kinds.map((one) => (
          <label class="choice">
            <input type="radio" name="owner" checked={kind.value === one} onChange={() => (kind.value = one)} />
            {text(labels[one])}
          </label>
        ))}
      </div>
      {kind.value !== "none" && <Entry label={text("ruleOwnerName")} at="spec.owner" problem={problem} value={name.value} set={(to) => (name.value = to)} required />}
    </fieldset>
  );
}
