import { signal, type Signal } from "@preact/signals";
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { type Cause, Dialog, Problem, Refusal, text, type Text, type Write } from "../shared";
import { isWithin } from "./causes";

/** What the fields of a form share. */
interface FormState {
  /** The refusal of the last write. */
  problem: Signal<Refusal | null>;
  /** The causes whose fields have been changed since. */
  settled: Signal<readonly Cause[]>;
  /** The paths of the fields. */
  paths: Signal<readonly string[]>;
}

const FormContext = createContext<FormState>({ problem: signal(null), settled: signal([]), paths: signal([]) });

/** Returns the causes of the last refusal whose fields have not been changed since. */
const openCauses = ({ problem, settled }: FormState) => (problem.value?.causes ?? []).filter((cause) => !settled.value.includes(cause));

/** Returns the path of the field that shows a cause: the field itself, or the closest one above it. Empty: no field of the form shows it. */
const placeOf = ({ paths }: FormState, { field }: Cause) => paths.value.reduce((found, path) => (path.length > found.length && isWithin(field, path) ? path : found), "");

/** Returns what is wrong at the fields with some paths, each cause with its path, and a function that takes the causes back. */
export function useCauses(paths: string[]): { causes: [cause: Cause, path: string][]; settle: () => void } {
  const form = useContext(FormContext);
  useLayoutEffect(() => {
    form.paths.value = [...form.paths.peek(), ...paths];
    return () => {
      const rest = [...form.paths.peek()];
      for (const path of paths) rest.splice(rest.indexOf(path), 1);
      form.paths.value = rest;
    };
  }, [paths.join(" ")]);
  const causes = openCauses(form).map((cause): [Cause, string] => [cause, placeOf(form, cause)]).filter(([, path]) => paths.includes(path));
  return { causes, settle: () => { if (causes.length > 0) form.settled.value = [...form.settled.peek(), ...causes.map(([cause]) => cause)]; } };
}

/** Returns a function that takes back what is wrong at the fields with some paths and below them. */
export function useSettle(): (paths: string[]) => void {
  const form = useContext(FormContext);
  return (paths) => {
    const causes = openCauses(form).filter(({ field }) => paths.some((path) => isWithin(field, path)));
    if (causes.length > 0) form.settled.value = [...form.settled.peek(), ...causes];
  };
}

/** Brings the first wrong field of a form into sight, and gives it the focus. Without one, it is the refusal. */
function showFirst(form: HTMLFormElement | null): void {
  const place = form?.querySelector<HTMLElement>("[data-wrong]") ?? form?.querySelector<HTMLElement>(".problem");
  for (let hidden = place?.closest("details"); hidden; hidden = hidden.parentElement?.closest("details")) hidden.open = true;
  if (place?.dataset.wrong) place.querySelector<HTMLElement>(":is(select, textarea, input:not([type=radio]), input:checked, button)")?.focus();
  place?.scrollIntoView({ block: "nearest" });
}

/** A form whose fields show what the API refuses. After a refusal, the first wrong field has the focus. */
export function Form({ write, submit, class: name, children }: { write: Write; submit: () => unknown; class?: string; children: ComponentChildren }) {
  const element = useRef<HTMLFormElement>(null);
  const form = useMemo((): FormState => ({ problem: write.problem, settled: signal([]), paths: signal([]) }), []);
  const problem = write.problem.value;
  useEffect(() => { if (problem) showFirst(element.current); }, [problem]);
  return (
    <FormContext.Provider value={form}>
      <form ref={element} class={name} onSubmit={(event) => { event.preventDefault(); submit(); }}>{children}</form>
    </FormContext.Provider>
  );
}

/** What no field of the form shows of a refusal, or that there are marked fields. */
export function FormProblem() {
  const form = useContext(FormContext);
  const refusal = form.problem.value;
  const open = openCauses(form);
  const causes = open.filter((cause) => !placeOf(form, cause));
  if (!refusal || refusal.causes.length === 0 || causes.length > 0) return <Problem refusal={refusal && new Refusal(refusal.code, refusal.message, causes, refusal.retryAfter)} />;
  return <div aria-live="assertive">{open.length > 0 && <div class="problem" role="alert"><p>{text("form.fieldsWrong")}</p></div>}</div>;
}

/** Brings what the keyboard has reached into sight. Of a text area, the browser shows no more than the line of the cursor. */
function showFocused({ target }: FocusEvent): void {
  const element = target as HTMLElement;
  if (element.matches(":focus-visible")) element.scrollIntoView({ block: "nearest" });
}

/** The dialog with the form of an object. Its fields scroll between its title and its buttons. */
export function FormDialog({ title, wide, submit, write, button, cancelLabel = "action.cancel", close, children }: {
  title: string; wide?: boolean; submit: () => unknown; write: Write; button: Text; cancelLabel?: Text; close: () => void; children: ComponentChildren;
}) {
  return (
    <Dialog title={title} close={close} wide={wide} form>
      <Form write={write} submit={submit}>
        <div class="fields" onFocusIn={showFocused}>
          {children}
          <FormProblem />
        </div>
        <div class="buttons">
          <button type="button" onClick={close}>{text(cancelLabel)}</button>
          <button class="primary" disabled={write.busy.value}>{text(button)}</button>
        </div>
      </Form>
    </Dialog>
  );
}
