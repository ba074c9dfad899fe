import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { readFieldHelp, type FieldHelp } from "../schema";
import { text } from "../texts";

/** Names with commas between them. */
function Names({ names }: { names: string[] }) {
  return <>{names.map((name, i) => <>{i > 0 && ", "}<code>{name}</code></>)}</>;
}

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
          {/* The text has the fields of the status. */}
          <h2>{field.path === "status" ? text("page.config") : <code>{field.path.replace("status.", "")}</code>}</h2>
          <p class="quiet">{field.type}</p>
          <p>{field.description}</p>
          {field.values.length > 0 && <p>{text("config.helpValues")} <Names names={field.values} /></p>}
          {field.fields.length > 0 && <p class="quiet">{text("config.helpFields")} <Names names={field.fields} /></p>}
        </>
      )}
    </aside>
  );
}
