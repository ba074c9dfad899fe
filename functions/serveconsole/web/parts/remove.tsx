import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { send, type Meta, type Refusal } from "../api";
import { text } from "../texts";
import { Dialog } from "./dialog";
import { Problem, asRefusal } from "./problem";

/**
 * The dialog that deletes an object. It asks for the name, and deletes the object that is shown, and not a new one with its name.
 * Instead is a button for what may be done in place of it.
 */
export function Remove(props: { path: string; of: Meta; close: () => void; done: () => void; instead?: ComponentChildren; children: ComponentChildren }) {
  const { path, of: { name, uid }, close, done, instead, children } = props;
  const typed = useSignal("");
  const problem = useSignal<Refusal | null>(null);
  async function remove(event: Event) {
    event.preventDefault();
    problem.value = null;
    try {
      await send(`${path}/${encodeURIComponent(name)}`, {
        method: "DELETE", body: JSON.stringify({ kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid } }),
      });
      done();
    } catch (failure) {
      problem.value = asRefusal(failure);
    }
  }
  return (
    <Dialog title={text("deleteTitle", { name })} close={close}>
      <form onSubmit={remove}>
        {children}
        <label>
          {text("deleteType", { name })}
          <input value={typed.value} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(event) => (typed.value = event.currentTarget.value)} autofocus />
        </label>
        <Problem of={problem.value} />
        <div class="buttons">
          <button type="button" onClick={close}>{text("back")}</button>
          {instead}
          <button class="danger" disabled={typed.value !== name}>{text("delete")}</button>
        </div>
      </form>
    </Dialog>
  );
}
