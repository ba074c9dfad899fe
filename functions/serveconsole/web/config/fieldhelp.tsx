import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { helpFor, type Help } from "../schema";
import { text } from "../texts";

/** What a field means, from the description of the API. */
export function FieldHelp({ steps }: { steps: (string | number)[] }) {
  const help = useSignal<Help | null>(null);
  const at = JSON.stringify(steps);
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => {
      helpFor("Config", ["status", ...steps]).then((found) => { if (current) help.value = found; }, () => undefined);
    }, 150);
    return () => { current = false; clearTimeout(timer); };
  }, [at]);
  const found = help.value;
  return (
    <aside class="card help" aria-live="polite" aria-label={text("configHelp")}>
      {!found ? <p class="quiet">{text("configHelpNone")}</p> : (
        <>
          <h2><code>{found.path}</code></h2>
          <p class="quiet">{found.type}</p>
          <p>{found.description}</p>
          {found.values.length > 0 && <p>{text("configValues")} {found.values.map((one) => <><code>{one}</code> </>)}</p>}
          {found.fields.length > 0 && <p class="quiet">{text("configFields")} {found.fields.map((one) => <><code>{one}</code> </>)}</p>}
        </>
      )}
    </aside>
  );
}
