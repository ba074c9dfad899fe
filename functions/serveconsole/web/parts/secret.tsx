import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useSecret } from "../branding";
import { text } from "../texts";
import { CopyButton } from "./command";
import { Dialog } from "./dialog";
import { download } from "./download";
import { useUnsaved } from "./unsaved";

/**
 * The dialog of a secret that is shown once, with buttons that show, copy and save it as a file. Until one of them has kept it, Escape and Back
 * stay and say so, and the browser asks before the page is left. Lines are for a secret of several lines, which is a file first of all. A harmless content
 * is no secret, and can be made again.
 */
export function SecretDialog(props: {
  title: string; wide?: boolean; lines?: boolean; harmless?: boolean; lead: ComponentChildren; file: string; content: string; close: () => void; children?: ComponentChildren;
}) {
  const { title, wide, lines, harmless = false, lead, file, content, close, children } = props;
  useSecret(!harmless);
  const visible = useSignal(false);
  const saved = useSignal(harmless);
  const warned = useSignal(false);
  const warn = () => { warned.value = true; };
  useUnsaved(!saved.value, warn);
  const keep = () => { saved.value = true; };
  const buttons = [
    <button type="button" aria-pressed={visible.value} onClick={() => (visible.value = !visible.value)}>{text(visible.value ? "action.hide" : "action.show")}</button>,
    <CopyButton content={() => content} copied={keep} />,
    <button type="button" class={lines ? "primary" : ""} autofocus={lines} onClick={() => { download(file, content); keep(); }}>{text("action.download")}</button>,
  ];
  return (
    <Dialog title={title} wide={wide} close={saved.value ? close : warn}>
      {lead}
      {!lines && <p class="secret"><code>{visible.value ? content.trim() : "•".repeat(24)}</code></p>}
      <div class="buttons start">{lines ? buttons.reverse() : buttons}</div>
      {lines && visible.value && <pre tabIndex={0}>{content}</pre>}
      <div role="alert">{warned.value && !saved.value && <p class="problem">{text("secret.unsaved")}</p>}</div>
      {children}
      <div class="buttons"><button type="button" class={lines ? "" : "primary"} onClick={close}>{text("action.saved")}</button></div>
    </Dialog>
  );
}
