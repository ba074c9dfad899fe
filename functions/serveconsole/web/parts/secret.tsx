import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useSecret } from "../branding";
import { text } from "../texts";
import { CopyButton } from "./command";
import { Dialog } from "./dialog";
import { download } from "./download";
import { useUnsaved } from "./unsaved";

/**
 * A text that is shown once. A page refers to its earlier renderings for some time, and so to what was in their properties and elements: the text is in
 * none of them, and is gone when it is forgotten.
 */
export class Secret {
  #content: string;
  constructor(content = "") {
    this.#content = content;
  }
  reveal(): string {
    return this.#content;
  }
  forget(): void {
    this.#content = "";
  }
}

/** An element with the text of a secret while it is shown, and otherwise with dots. */
function SecretText({ as: Element, secret, visible }: { as: "code" | "pre"; secret: Secret; visible: boolean }) {
  const element = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    const { current } = element;
    current!.textContent = visible ? secret.reveal().trimEnd() : "•".repeat(24);
    return () => { current!.textContent = ""; };
  }, [visible]);
  return <Element ref={element} tabIndex={Element === "pre" ? 0 : undefined} />;
}

/**
 * The dialog of a secret that is shown once, with buttons that show, copy and save it as a file. Until one of them has kept it, Escape and Back
 * stay and say so, and the browser asks before the page is left. Lines are for a secret of several lines, which is a file first of all. A harmless content
 * is no secret, and can be made again.
 */
export function SecretDialog(props: {
  title: string; wide?: boolean; lines?: boolean; harmless?: boolean; lead: ComponentChildren; file: string; secret: Secret; close: () => void; children?: ComponentChildren;
}) {
  const { title, wide, lines, harmless = false, lead, file, secret, close, children } = props;
  useSecret(!harmless);
  const visible = useSignal(false);
  const saved = useSignal(harmless);
  const warned = useSignal(false);
  const warn = () => { warned.value = true; };
  useUnsaved(!saved.value, warn);
  const keep = () => { saved.value = true; };
  useLayoutEffect(() => () => secret.forget(), []);
  const buttons = [
    <button type="button" aria-pressed={visible.value} onClick={() => (visible.value = !visible.value)}>{text(visible.value ? "action.hide" : "action.show")}</button>,
    <CopyButton content={() => secret.reveal()} copied={keep} />,
    <button type="button" class={lines ? "primary" : ""} autofocus={lines} onClick={() => { download(file, secret.reveal()); keep(); }}>{text("action.download")}</button>,
  ];
  return (
    <Dialog title={title} wide={wide} close={saved.value ? close : warn}>
      {lead}
      {!lines && <p class="secret"><SecretText as="code" secret={secret} visible={visible.value} /></p>}
      <div class="buttons start">{lines ? buttons.reverse() : buttons}</div>
      {lines && visible.value && <SecretText as="pre" secret={secret} visible />}
      <div role="alert">{warned.value && !saved.value && <p class="problem">{text("secret.unsaved")}</p>}</div>
      {children}
      <div class="buttons"><button type="button" class={lines ? "" : "primary"} onClick={close}>{text("action.saved")}</button></div>
    </Dialog>
  );
}
