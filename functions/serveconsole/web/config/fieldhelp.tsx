import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { readFieldHelp, type FieldHelp } from "../schema";
import { text } from "../texts";

/** The description of a field, from the OpenAPI document. */
export function FieldHelp({ steps }: { steps: (string | number)[] }) {
  const help = useSignal<FieldHelp | null>(null);
  const key = JSON.stringify(steps);
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => {
      readFieldHelp("Config", ["status", ...steps]).then((read) => { if (current) help.value = read; }, () => undefined);
    }, 150);
    return () => { current = false; clearTimeout(timer); };
  }, [key]);
  const field = help.value;
  return (
    <aside class="card help" aria-live="polite" aria-label={text("config.help")}>
      {!field ? <p class="quiet">{text("config.helpNone")}</p> : (
        <>
          <h2><code>{field.path}</code></h2>
          <p class="quiet">{field.type}</p>
          <p>{field.description}</p>
          {field.values.length > 0 && <p>{text("config.helpValues")} {field.values.map((value) => <><code>{value}</code> </>)}</p>}
          {field.fields.length > 0 && <p class="quiet">{text("config.helpFields")} {field.fields.map((name) => <><code>{name}</code> </>)}</p>}
        </>
      )}
    </aside>
  );
}
