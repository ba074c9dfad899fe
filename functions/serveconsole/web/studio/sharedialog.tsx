import { effect, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { CopyButton } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { text } from "../texts";
import { maskSecrets } from "./documents";
import { workFragment, maxWorkBytes, maxLinkLength, workText, type Work } from "./share";

/** The dialog with the link to the texts of the studio. */
export function ShareDialog({ work, close }: { work: Work; close: () => void }) {
  const includeSecrets = useSignal(false);
  const link = useSignal("");
  const problem = useSignal("");
  useEffect(() => effect(() => {
    const included = includeSecrets.value;
    const tenant = included ? work.tenant : maskSecrets(work.tenant);
    const host = included ? work.host : maskSecrets(work.host);
    link.value = "";
    problem.value = "";
    if (tenant === null || host === null) {
      problem.value = text("studio.shareErrors");
      return;
    }
    const shared = { ...work, tenant, host };
    if (workText(shared).length > maxWorkBytes) {
      problem.value = text("studio.shareLarge");
      return;
    }
    void workFragment(shared).then((hash) => {
      if (includeSecrets.peek() === included) link.value = location.origin + location.pathname + hash;
    });
  }), []);
  return (
    <Dialog title={text("studio.share")} close={close} wide>
      <p>{text("studio.shareLead")}</p>
      <label class="choice">
        <input type="checkbox" checked={includeSecrets.value} onChange={(event) => (includeSecrets.value = event.currentTarget.checked)} />
        {text("studio.shareSecrets")}
      </label>
      {problem.value && <p class="problem" role="alert">{problem.value}</p>}
      {link.value && (
        <label>
          {text("studio.link")}
          <textarea readOnly rows={4} spellcheck={false} value={link.value} />
        </label>
      )}
      {link.value.length > maxLinkLength && <p class="problem">{text("studio.shareLong", { count: link.value.length })}</p>}
      <div class="buttons">
        <button type="button" onClick={close}>{text("action.close")}</button>
        {link.value && <CopyButton content={() => link.value} />}
      </div>
    </Dialog>
  );
}
