import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { SessionNotice } from "./sessionnotice";

/** A dialog over the page. Escape closes it, unless it has no close. It says when the session ends, because the page below cannot be used. */
export function Dialog(props: { title: string; wide?: boolean; close?: () => void; children: ComponentChildren }) {
  const title = useId();
  const element = useRef<HTMLDialogElement>(null);
  // Not after the next frame: until it is open, the page below gets what is typed.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={props.wide ? "wide" : ""}
      aria-labelledby={title}
      onCancel={(event) => {
        event.preventDefault();
        props.close?.();
      }}
    >
      <h2 id={title} tabIndex={-1}>{props.title}</h2>
      <SessionNotice />
      {props.children}
    </dialog>
  );
}
