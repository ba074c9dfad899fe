import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { text } from "../texts";
import { Icon } from "./icons";
import { SessionNotice } from "./sessionnotice";
import { useUnsaved } from "./unsaved";

/** The first field of a form. Of a choice, it is what is chosen. */
const firstField = "form :is(select, textarea, input:not([type=radio]), input:checked)";

const focusElement = (element: HTMLElement | null) => element?.focus();

/**
 * A dialog over the page, or a sheet at its side, which has a button that closes it. Escape closes it, and so does a click beside it unless
 * something was typed into it. With a form, the first field has the focus, and Escape, Back and a click beside it ask before they throw away what
 * was typed. Covered is a sheet below another dialog: it stays, and has the focus again afterwards. Without close, nothing closes it. It says when the session ends, because the page below cannot be used.
 */
export function Dialog(props: { title: string; wide?: boolean; sheet?: boolean; form?: boolean; covered?: boolean; close?: () => void; children: ComponentChildren }) {
  const { title, wide, sheet, form, covered, close, children } = props;
  const titleId = useId();
  const element = useRef<HTMLDialogElement>(null);
  // The field into which something was typed last.
  const typed = useSignal<HTMLElement | null>(null);
  const asking = useSignal(false);
  const pressedBeside = useRef(false);
  const keep = () => {
    asking.value = false;
    focusElement(typed.value);
  };
  const unsaved = Boolean(form && typed.value);
  const ask = () => { asking.value = true; };
  const leave = () => (!unsaved ? close?.() : asking.value ? keep() : ask());
  useUnsaved(unsaved, ask);
  // Not after the next frame: until it is open, the page below gets what is typed.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    if (!sheet && !dialog?.querySelector("[autofocus]")) focusElement(dialog?.querySelector<HTMLElement>(firstField) ?? null);
    return () => dialog?.close();
  }, []);
  const isBeside = ({ target, clientX, clientY }: MouseEvent) => {
    if (target !== element.current || !element.current) return false;
    const { left, right, top, bottom } = element.current.getBoundingClientRect();
    return clientX < left || clientX >= right || clientY < top || clientY >= bottom;
  };
  return (
    <dialog
      ref={element}
      class={sheet ? "sheet" : wide ? "wide" : ""}
      aria-labelledby={titleId}
      aria-hidden={covered || undefined}
      onInput={({ target }) => { typed.value = target as HTMLElement; }}
      onPointerDown={(event) => { pressedBeside.current = isBeside(event); }}
      onClick={(event) => { if (pressedBeside.current && isBeside(event) && (unsaved || !typed.value)) leave(); }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
        // The browser closes a dialog at the second Escape, whatever a listener of "cancel" says.
        event.preventDefault();
        leave();
      }}
      onCancel={(event) => {
        event.preventDefault();
        leave();
      }}
    >
      <div class="head">
        <h2 id={titleId} tabIndex={-1}>{title}</h2>
        {sheet && close && <button type="button" class="icononly" aria-label={text("action.close")} onClick={close}><Icon name="close" /></button>}
      </div>
      <SessionNotice />
      {children}
      {asking.value && (
        <div class="ending ask" role="group" aria-labelledby={`${titleId}-ask`}>
          <p id={`${titleId}-ask`} role="alert">{text("form.discard")}</p>
          <button type="button" ref={focusElement} onClick={keep}>{text("form.keep")}</button>
          <button type="button" class="danger" onClick={close}>{text("action.discard")}</button>
        </div>
      )}
    </dialog>
  );
}
