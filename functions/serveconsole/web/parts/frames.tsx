import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { home } from "../api";
import { may } from "../rights";
import { text, type Text } from "../texts";
import { Command } from "./command";
import { Dialog } from "./dialog";
import { Problem } from "./problem";
import type { Refusal } from "../api";
import type { Write } from "./write";

/** The footer of a form: the refusal of its write, and its buttons. Refusal replaces the refusal of the write if fields show some of its causes. */
export function FormFooter({ write, refusal, button, cancelLabel = "action.cancel", close }: {
  write: Write; refusal?: Refusal | null; button: Text; cancelLabel?: Text; close: () => void;
}) {
  return (
    <>
      <Problem refusal={refusal === undefined ? write.problem.value : refusal} />
      <div class="buttons">
        <button type="button" onClick={close}>{text(cancelLabel)}</button>
        <button class="primary" disabled={write.busy.value}>{text(button)}</button>
      </div>
    </>
  );
}

/** The dialog with the form of an object. After a refusal, the first invalid field has the focus. */
export function FormDialog(props: Parameters<typeof FormFooter>[0] & {
  title: string; wide?: boolean; submit: (form: HTMLFormElement) => unknown; children: ComponentChildren;
}) {
  const { title, wide, submit, children, ...footer } = props;
  const form = useRef<HTMLFormElement>(null);
  const problem = footer.write.problem.value;
  useEffect(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus(), [problem]);
  return (
    <Dialog title={title} close={footer.close} wide={wide} form>
      <form ref={form} onSubmit={(event) => { event.preventDefault(); submit(event.currentTarget); }}>
        {children}
        <FormFooter {...footer} />
      </form>
    </Dialog>
  );
}

/** Returns a function that returns the trimmed text of a field by its name. */
export function fieldsOf(form: HTMLFormElement): (name: string) => string {
  const fields = new FormData(form);
  return (name) => String(fields.get(name) ?? "").trim();
}

/** The sheet that shows an object: its facts, further content, the kubectl command, and the buttons of permitted actions. */
export function DetailsDialog(props: {
  title: string; facts: ComponentChildren; command: string; problem?: Refusal | null; close: () => void;
  /** The buttons, and the main button after them. */
  buttons?: ComponentChildren; mainButton?: ComponentChildren;
  /** The warnings of the last accepted write. */
  warnings?: string[];
  /** The filters of the audit that show the events of the object. */
  events?: Record<string, string>; children?: ComponentChildren;
  /** The dialog over the sheet, if one is open. */
  over?: ComponentChildren;
}) {
  const { title, facts, command, problem = null, close, buttons, mainButton, warnings = [], events, children, over } = props;
  const sheet = (
    <Dialog title={title} close={close} sheet covered={Boolean(over)}>
      <dl>{facts}</dl>
      {children}
      {events && may("list", "auditevents") && <p><a href={`${home}/audit?${new URLSearchParams(events)}`}>{text(events.user ? "events.theirs" : "events.link")}</a></p>}
      <Command command={command} />
      <Problem refusal={problem} />
      <Warnings warnings={warnings} />
      <div class="buttons">
        {buttons}
        {mainButton}
      </div>
    </Dialog>
  );
  return <>{sheet}{over}</>;
}

/** The warnings of the API. */
export function Warnings({ warnings, label }: { warnings: string[]; label?: string }) {
  if (warnings.length === 0) return null;
  return <ul class="findings" aria-label={label}>{warnings.map((warning) => <li class="warning">{warning}</li>)}</ul>;
}
