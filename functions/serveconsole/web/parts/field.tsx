import { useId } from "preact/hooks";
import { Refusal, type Cause } from "../api";
import { text } from "../texts";

/** Whether a path is a field, or is below it. */
const within = (path: string | undefined, at: string) => path !== undefined && (path === at || path.startsWith(`${at}.`) || path.startsWith(`${at}[`));

/** Returns the causes of a refusal that are about a field or what is below it, or exactly about the field. */
function causesAt(of: Refusal | null, at: string, exactly = false): Cause[] {
  return (of?.causes ?? []).filter(({ field }) => (exactly ? field === at : within(field, at)));
}

/** Returns a refusal without the causes that are shown at their fields, or nothing if there was no refusal. */
export function otherThan(of: Refusal | null, shown: string[]): Refusal | null {
  if (!of || of.causes.length === 0) return of;
  const rest = of.causes.filter(({ field }) => !shown.some((at) => within(field, at)));
  return new Refusal(of.code, rest.length > 0 ? of.message : text("fieldsWrong"), rest, of.retryAfter);
}

/** What is wrong with a field, in the words of the API. */
export function FieldProblem({ of, at, exactly, id }: { of: Refusal | null; at: string; exactly?: boolean; id?: string }) {
  const causes = causesAt(of, at, exactly);
  return <div id={id} class="wrong">{causes.map((cause) => <p><code>{cause.field}</code> {cause.message}</p>)}</div>;
}

/** A field of a form, with what is wrong with it. Lines makes it a field of several lines, and name is its name where the label stands more than once. */
export function Entry(props: {
  label: string; name?: string; at: string; problem: Refusal | null; value: string; set: (to: string) => void;
  required?: boolean; placeholder?: string; pattern?: string; lines?: number;
}) {
  const { label, name, at, problem, value, set, lines, ...rest } = props;
  const id = useId();
  const shared = {
    id, value, "aria-label": name, "aria-invalid": causesAt(problem, at).length > 0, "aria-describedby": `${id}-wrong`, autocapitalize: "off" as const, spellcheck: false, ...rest,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {lines ? <textarea {...shared} rows={lines} onInput={(event) => set(event.currentTarget.value)} /> : <input {...shared} onInput={(event) => set(event.currentTarget.value)} />}
      <FieldProblem of={problem} at={at} id={`${id}-wrong`} />
    </div>
  );
}
