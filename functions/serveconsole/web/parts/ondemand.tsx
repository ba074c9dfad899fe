import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentType } from "preact";
import { loadTexts, text } from "../texts";
import { Dialog } from "./dialog";

/**
 * Returns a dialog that is a script of its own, which is loaded when the dialog is opened, and a function that loads it earlier. An upgrade
 * of the console may have removed the script: then a dialog says so, and the page can be loaded again at the same address.
 */
export function onDemand<P extends { close: () => void }>(load: () => Promise<ComponentType<P>>): [dialog: ComponentType<P>, preload: () => void] {
  let loaded: ComponentType<P> | undefined;
  let loading: Promise<void> | undefined;
  const begin = () => {
    loading ??= Promise.all([load(), loadTexts()]).then(([component]) => { loaded = component; });
    // What failed is tried again.
    loading.catch(() => { loading = undefined; });
    return loading;
  };
  function OnDemand(props: P) {
    const state = useSignal<"loading" | "loaded" | "failed">(loaded ? "loaded" : "loading");
    // A script that was asked for earlier may have come between the first drawing and this effect.
    useEffect(() => { begin().then(() => { state.value = "loaded"; }, () => { state.value = "failed"; }); }, []);
    if (state.value === "loading") return <p class="hidden" role="status">{text("state.loading")}</p>;
    if (state.value === "loaded" && loaded) {
      const Component = loaded;
      return <Component {...props} />;
    }
    return (
      <Dialog title={text("problem.newVersion")} close={props.close}>
        <p>{text("problem.newVersionLead")}</p>
        <div class="buttons">
          <button type="button" onClick={props.close}>{text("action.close")}</button>
          <button type="button" class="primary" onClick={() => location.reload()}>{text("action.reload")}</button>
        </div>
      </Dialog>
    );
  }
  return [OnDemand, () => { begin().catch(() => undefined); }];
}
