import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Meta, Refusal } from "../api";
import { text, type Text } from "../texts";
import { Dialog } from "./dialog";
import { Problem } from "./problem";
import { useWrite } from "./write";

/**
 * The form of a dialog that asks whether to do something. Confirmation is the word that a person types first, with the label of its field.
 * Alternative is a button for what may be done instead.
 */
export function ConfirmForm(props: {
  confirmation?: { word: string; label: string }; button: Text; problem?: Refusal | null; confirmed: () => unknown; close: () => void; alternative?: ComponentChildren; children: ComponentChildren;
}) {
  const { confirmation, button, problem = null, confirmed, close, alternative, children } = props;
  const typedWord = useSignal("");
  return (
    <form onSubmit={(event) => { event.preventDefault(); confirmed(); }}>
      {children}
      {confirmation && (
        <label>
          {confirmation.label}
          <input value={typedWord.value} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(event) => (typedWord.value = event.currentTarget.value)} autofocus />
        </label>
      )}
      <Problem refusal={problem} />
      <div class="buttons">
        <button type="button" onClick={close}>{text("action.back")}</button>
        {alternative}
        <button class="danger" disabled={confirmation !== undefined && typedWord.value !== confirmation.word}>{text(button)}</button>
      </div>
    </form>
  );
}

/** The dialog that deletes an object. A person types the name first. A new object with the same name is not deleted. */
export function DeleteDialog(props: { path: string; object: Meta; close: () => void; deleted: () => void; alternative?: ComponentChildren; children: ComponentChildren }) {
  const { path, object: { name, uid }, close, deleted, alternative, children } = props;
  const { problem, remove } = useWrite(path);
  return (
    <Dialog title={text("delete.title", { name })} close={close}>
      <ConfirmForm
        confirmation={{ word: name, label: text("delete.type", { name }) }} button="action.delete" problem={problem.value} confirmed={() => remove({ name, uid }, deleted)} close={close} alternative={alternative}
      >
        {children}
      </ConfirmForm>
    </Dialog>
  );
}
