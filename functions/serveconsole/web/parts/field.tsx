import { useId } from "preact/hooks";
import { Refusal, type Cause } from "../api";
import { text } from "../texts";
import { NameInput, type NameSource } from "./namelist";

/** Reports whether a path is a field or is below it. */
const isWithin = (path: string | undefined, field: string) => path !== undefined && (path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`));

/** Returns the causes of a refusal that are about a field or what is below it, or exactly about the field. */
function causesAt(refusal: Refusal | null, path: string, exactly = false): Cause[] {
  return (refusal?.causes ?? []).filter(({ field }) => (exactly ? field === path : isWithin(field, path)));
}

/** Returns a refusal without the causes that are shown at their fields, or nothing if there was no refusal. */
export function withoutCauses(refusal: Refusal | null, shown: string[]): Refusal | null {
  if (!refusal || refusal.causes.length === 0) return refusal;
  const causes = refusal.causes.filter(({ field }) => !shown.some((path) => isWithin(field, path)));
  return new Refusal(refusal.code, causes.length > 0 ? refusal.message : text("form.fieldsWrong"), causes, refusal.retryAfter);
}

/** The causes of a refusal at a field, in the words of the API. */
export function FieldProblem({ refusal, path, exactly, id }: { refusal: Refusal | null; path: string; exactly?: boolean; id?: string }) {
  const causes = causesAt(refusal, path, exactly);
  return <div id={id} class="wrong">{causes.map((cause) => <p><code>{cause.field}</code> {cause.message}</p>)}</div>;
}

/** A field of a form with its causes. Lines makes it a text area of as many lines. Name is its accessible name if the label is not unique. Names are offered; with several, each of the names that the field has. */
export function Field(props: {
  label: string; name?: string; path: string; refusal: Refusal | null; value: string; set: (value: string) => void;
  required?: boolean; placeholder?: string; pattern?: string; lines?: number; names?: NameSource; several?: boolean; maxLength?: number; hint?: string; autofocus?: boolean;
}) {
  const { label, name, path, refusal, value, set, lines, names, several, hint, ...attributes } = props;
  const id = useId();
  const common = {
    id, value, "aria-label": name, "aria-invalid": causesAt(refusal, path).length > 0, "aria-describedby": hint ? `${id}-wrong ${id}-hint` : `${id}-wrong`, autocapitalize: "off" as const, spellcheck: false, ...attributes,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {lines ? <textarea {...common} rows={lines} onInput={(event) => set(event.currentTarget.value)} />
        : names ? <NameInput {...common} source={names} several={several} onInput={(event) => set(event.currentTarget.value)} />
          : <input {...common} onInput={(event) => set(event.currentTarget.value)} />}
      {hint && <small id={`${id}-hint`} class="quiet">{hint}</small>}
      <FieldProblem refusal={refusal} path={path} id={`${id}-wrong`} />
    </div>
  );
}
