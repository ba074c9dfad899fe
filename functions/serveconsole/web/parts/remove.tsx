import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Meta, Refusal } from "../api";
import { text, type Text } from "../texts";
import { Dialog } from "./dialog";
import { Problem } from "./problem";
import { useWrite } from "./write";

/**
 * The form of a dialog that asks whether to do something. Typed is the word that somebody types first, with the label of its field. Instead is a
 * button for what may be done in place of it.
 */
export function Confirm(props: {
  typed?: { word: string; label: string }; button: Text; problem?: Refusal | null; act: () => unknown; close: () => void; instead?: ComponentChildren; children: ComponentChildren;
}) {
  const { typed, button, problem = null, act, close, instead, children } = props;
  const entered = useSignal("");
  return (
    <form onSubmit={(event) => { event.preventDefault(); act(); }}>
      {children}
      {typed && (
        <label>
          {typed.label}
          <input value={entered.value} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(event) => (entered.value = event.currentTarget.value)} autofocus />
        </label>
      )}
      <Problem of={problem} />
      <div class="buttons">
        <button type="button" onClick={close}>{text("back")}</button>
        {instead}
        <button class="danger" disabled={typed !== undefined && entered.value !== typed.word}>{text(button)}</button>
      </div>
    </form>
  );
}

/** The dialog that deletes an object. It asks for the name, and deletes the object that is shown, and not a new one with its name. */
export function Remove(props: { path: string; of: Meta; close: () => void; done: () => void; instead?: ComponentChildren; children: ComponentChildren }) {
  const { path, of: { name, uid }, close, done, instead, children } = props;
  const { problem, remove } = useWrite(path);
  return (
    <Dialog title={text("deleteTitle", { name })} close={close}>
      <Confirm
        typed={{ word: name, label: text("deleteType", { name }) }} button="delete" problem={problem.value} act={() => remove({ name, uid }, done)} close={close} instead={instead}
      >
        {children}
      </Confirm>
    </Dialog>
  );
}
