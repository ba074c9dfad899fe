import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { text } from "../texts";
import { Icon } from "./icons";
import { SessionNotice } from "./sessionnotice";

/**
 * A dialog over the page, or a sheet at its side, which has a button that closes it. Escape closes it, and so does a click beside it unless
 * something was typed into it. Without close, nothing does. It says when the session ends, because the page below cannot be used.
 */
export function Dialog(props: { title: string; wide?: boolean; sheet?: boolean; close?: () => void; children: ComponentChildren }) {
  const { title, wide, sheet, close, children } = props;
  const titleId = useId();
  const element = useRef<HTMLDialogElement>(null);
  const typed = useRef(false);
  const pressedBeside = useRef(false);
  // Not after the next frame: until it is open, the page below gets what is typed.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
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
      onInput={() => { typed.current = true; }}
      onPointerDown={(event) => { pressedBeside.current = isBeside(event); }}
      onClick={(event) => { if (pressedBeside.current && isBeside(event) && !typed.current) close?.(); }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
        // The browser closes a dialog at the second Escape, whatever a listener of "cancel" says.
        event.preventDefault();
        close?.();
      }}
      onCancel={(event) => {
        event.preventDefault();
        close?.();
      }}
    >
      <div class="head">
        <h2 id={titleId} tabIndex={-1}>{title}</h2>
        {sheet && close && <button type="button" class="icononly" aria-label={text("action.close")} onClick={close}><Icon name="close" /></button>}
      </div>
      <SessionNotice />
      {children}
    </dialog>
  );
}
