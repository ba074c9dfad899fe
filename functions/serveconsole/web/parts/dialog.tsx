import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A dialog over the page. Escape closes it, unless it has no close. */
export function Dialog(props: { title: string; wide?: boolean; close?: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={props.wide ? "wide" : ""}
      aria-labelledby="dialog-title"
      onCancel={(event) => {
        event.preventDefault();
        props.close?.();
      }}
    >
      <h2 id="dialog-title" tabIndex={-1}>{props.title}</h2>
      {props.children}
    </dialog>
  );
}
