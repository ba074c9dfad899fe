import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { type Cause, text } from "../shared";
import { sayingsOf } from "./causes";
import { useCauses, useSettle } from "./form";
import { NameInput, type NameSource } from "./namelist";

/** What is wrong at a field, in the words of the console. The words of the API are below it. */
function Wrong({ causes, id }: { causes: [cause: Cause, path: string][]; id?: string }) {
  const sayings = sayingsOf(causes);
  return (
    <div class="wrong">
      <div id={id}>{sayings.map(({ below, says }) => <p>{below && <code>{below}</code>} {says}</p>)}</div>
      {causes.some(([{ message }]) => !sayings.some(({ says }) => says === message)) && (
        <details>
          <summary>{text("wrong.api")}</summary>
          {causes.map(([{ field, message }]) => <p><code>{field}</code> {message}</p>)}
        </details>
      )}
    </div>
  );
}

/**
 * Fields that show together what is wrong with them, until one of them is changed. A button among them adds or removes some, so that their numbers
 * change. They are a group with a legend that is seen, or with a label that is not.
 */
export function FieldGroup({ paths, legend, label, class: name, children }: { paths: string[]; legend?: string; label?: string; class?: string; children?: ComponentChildren }) {
  const { causes, settle } = useCauses(paths);
  const settleAll = useSettle();
  const attributes = {
    class: name, "data-wrong": causes.length > 0 || undefined, onInput: settle, onChange: settle,
    onClick: ({ target }: MouseEvent) => { if ((target as Element).closest("button")) settleAll(paths); },
  };
  return legend ? <fieldset {...attributes}><legend>{legend}</legend>{children}<Wrong causes={causes} /></fieldset>
    : <div role={label ? "group" : undefined} aria-label={label} {...attributes}>{children}<Wrong causes={causes} /></div>;
}

/** A field of a form with what is wrong with it. Lines makes it a text area of as many lines. Name is its accessible name if the label is not unique. Names are offered; with several, each of the names that the field has. */
export function Field(props: {
  label: string; name?: string; path: string | string[]; value: string; set: (value: string) => void; type?: "email" | "password" | "url"; autocomplete?: "current-password" | "new-password";
  required?: boolean; placeholder?: string; pattern?: string; lines?: number; names?: NameSource; several?: boolean; minLength?: number; maxLength?: number; hint?: string; autofocus?: boolean;
}) {
  const { label, name, path, value, set, lines, names, several, hint, type = "text", ...attributes } = props;
  const { causes, settle } = useCauses([path].flat());
  const id = useId();
  const common = {
    id, value, "aria-label": name, "aria-invalid": causes.length > 0, "aria-describedby": hint ? `${id}-wrong ${id}-hint` : `${id}-wrong`, autocapitalize: "off" as const, spellcheck: false, ...attributes,
  };
  return (
    <div class="field" data-wrong={causes.length > 0 || undefined} onInput={settle}>
      <label for={id}>{label}</label>
      {lines ? <textarea {...common} rows={lines} onInput={(event) => set(event.currentTarget.value)} />
        : names ? <NameInput {...common} source={names} several={several} onInput={(event) => set(event.currentTarget.value)} />
          : <input {...common} type={type as "text"} onInput={(event) => set(event.currentTarget.value)} />}
      {hint && <small id={`${id}-hint`} class="quiet">{hint}</small>}
      <Wrong causes={causes} id={`${id}-wrong`} />
    </div>
  );
}
