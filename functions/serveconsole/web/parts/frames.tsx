import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { text, type Text } from "../texts";
import { AsKubectl } from "./copy";
import { Dialog } from "./dialog";
import { Problem } from "./problem";
import type { Refusal } from "../api";
import type { Write } from "./write";

/** The end of a form: why its write was refused, and its buttons. Refused is the refusal without what is shown at the fields. */
export function FormEnd({ write, refused, button, cancel = "cancel", close, focused }: {
  write: Write; refused?: Refusal | null; button: Text; cancel?: Text; close: () => void; focused?: boolean;
}) {
  return (
    <>
      <Problem of={refused === undefined ? write.problem.value : refused} />
      <div class="buttons">
        <button type="button" onClick={close}>{text(cancel)}</button>
        <button class="primary" disabled={write.busy.value} autofocus={focused}>{text(button)}</button>
      </div>
    </>
  );
}

/** The dialog with a form that makes or changes an object. After a refusal, the first field that is wrong has the focus. */
export function FormDialog(props: Parameters<typeof FormEnd>[0] & {
  title: string; wide?: boolean; submit: (form: HTMLFormElement) => unknown; children: ComponentChildren;
}) {
  const { title, wide, submit, children, ...end } = props;
  const form = useRef<HTMLFormElement>(null);
  const problem = end.write.problem.value;
  useEffect(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus(), [problem]);
  return (
    <Dialog title={title} close={end.close} wide={wide}>
      <form ref={form} onSubmit={(event) => { event.preventDefault(); submit(event.currentTarget); }}>
        {children}
        <FormEnd {...end} />
      </form>
    </Dialog>
  );
}

/** Returns the texts of the fields of a form by their names. */
export function fieldsOf(form: HTMLFormElement): (name: string) => string {
  const fields = new FormData(form);
  return (name) => String(fields.get(name) ?? "").trim();
}

/** The dialog that shows an object: its facts, what else it has, the command that does the same, and what the session may do with it. */
export function DetailsDialog(props: {
  title: string; facts: ComponentChildren; command: string; problem?: Refusal | null; close: () => void;
  /** The buttons before the one that closes the dialog, and the one after it, in place of it the most prominent. */
  buttons?: ComponentChildren; main?: ComponentChildren;
  /** What the API has warned of when it accepted the last change. */
  warnings?: string[]; children?: ComponentChildren;
}) {
  const { title, facts, command, problem = null, close, buttons, main, warnings = [], children } = props;
  return (
    <Dialog title={title} close={close} wide>
      <dl>{facts}</dl>
      {children}
      <AsKubectl command={command} />
      <Problem of={problem} />
      <Warnings of={warnings} />
      <div class="buttons">
        {buttons}
        {main === undefined && <span class="room" />}
        <button type="button" class={main === undefined ? "primary" : undefined} onClick={close}>{text("close")}</button>
        {main}
      </div>
    </Dialog>
  );
}

/** Texts that the API has warned with. */
export function Warnings({ of, label }: { of: string[]; label?: string }) {
  if (of.length === 0) return null;
  return <ul class="findings" aria-label={label}>{of.map((warning) => <li class="warning">{warning}</li>)}</ul>;
}
