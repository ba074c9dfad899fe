import type { ComponentChildren } from "preact";
import { home } from "../api";
import { may } from "../rights";
import { text } from "../texts";
import { Command } from "./command";
import { Dialog } from "./dialog";
import { Problem } from "./problem";
import type { Refusal } from "../api";

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
