import { effect, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Copy } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { text } from "../texts";
import { masked } from "./documents";
import { fragment, largest, longLink, written, type Work } from "./share";

/** The dialog with the link. */
export function Share({ work, close }: { work: Work; close: () => void }) {
  const secrets = useSignal(false);
  const link = useSignal("");
  const refused = useSignal("");
  useEffect(() => effect(() => {
    const all = secrets.value;
    const tenant = all ? work.tenant : masked(work.tenant);
    const host = all ? work.host : masked(work.host);
    link.value = "";
    refused.value = "";
    if (tenant === null || host === null) {
      refused.value = text("studioShareErrors");
      return;
    }
    const shared = { ...work, tenant, host };
    if (written(shared).length > largest) {
      refused.value = text("studioShareLarge");
      return;
    }
    void fragment(shared).then((end) => {
      if (secrets.peek() === all) link.value = location.origin + location.pathname + end;
    });
  }), []);
  return (
    <Dialog title={text("studioShare")} close={close} wide>
      <p>{text("studioShareLead")}</p>
      <label class="choice">
        <input type="checkbox" checked={secrets.value} onChange={(event) => (secrets.value = event.currentTarget.checked)} />
        {text("studioShareSecrets")}
      </label>
      {refused.value && <p class="problem" role="alert">{refused.value}</p>}
      {link.value && (
        <label>
          {text("studioLink")}
          <textarea readOnly rows={4} spellcheck={false} value={link.value} />
        </label>
      )}
      {link.value.length > longLink && <p class="problem">{text("studioShareLong", { count: link.value.length })}</p>}
      <div class="buttons">
        <button type="button" onClick={close}>{text("close")}</button>
        {link.value && <Copy what={() => link.value} />}
      </div>
    </Dialog>
  );
}
