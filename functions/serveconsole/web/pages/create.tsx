import { useComputed, useSignal } from "@preact/signals";
import { useSecret } from "../look";
import { useAttempt } from "../parts/attempt";
import { Copy, quoted } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { download } from "../parts/download";
import { FormDialog } from "../parts/frames";
import { Lifetime } from "../parts/lifetime";
import { Scope, useScope } from "../parts/scope";
import { useWrite } from "../parts/write";
import { person } from "../person";
import { text, type Text } from "../texts";
import type { Key } from "./key";
import { Preview } from "./preview";
import { path } from "./keys";

const lifetimes: [number, Text][] = [[3600, "hour"], [28_800, "eightHours"], [86_400, "day"], [604_800, "week"], [2_592_000, "month"], [0, "noEnd"]];
const kinds: [string, Text][] = [
  ["read", "mayRead"], ["project", "mayProject"], ["cluster", "mayCluster"], ["nothing", "mayNothing"], ["all", "mayAll"], ["yaml", "mayYaml"],
];

/** The dialog in which somebody makes a key. */
export function Create({ close, made }: { close: () => void; made: (key: Key) => void }) {
  const name = useSignal("");
  const display = useSignal("");
  const ttl = useSignal(86_400);
  const idle = useSignal(false);
  // A session that is narrowed makes keys that are as narrow.
  const narrow = person.value?.accessKeyScope;
  const chosen = useScope(narrow ? "all" : "read", narrow);
  const write = useWrite(path);
  const attempt = useAttempt();

  const body = useComputed(() => {
    const scope = chosen.lines();
    return [
      "apiVersion: management.platform.sh/v1",
      "kind: OwnedAccessKey",
      name.value ? `metadata: {name: ${JSON.stringify(name.value)}}` : 'metadata: {generateName: "key-"}',
      "spec:",
      `  displayName: ${JSON.stringify(display.value)}`,
      `  ttl: ${ttl.value}`,
      ...(idle.value && ttl.value > 0 ? ["  ttlAfterLastActivity: true"] : []),
      ...(scope ? [`  scope:${scope}`] : []),
      "",
    ].join("\n");
  });

  const submit = () => write.run(() => attempt(`${path}?fieldValidation=Strict`, body.value, "application/yaml"), async (response) => made((await response.json()) as Key));

  return (
    <FormDialog title={text("newKey")} close={close} wide submit={submit} write={write} button="create">
      <p class="quiet">{text("createLead")}</p>
      <div class="two">
        <label>
          {text("createDisplay")}
          <input value={display.value} maxLength={256} onInput={(event) => (display.value = event.currentTarget.value)} autofocus />
        </label>
        <div class="field">
          <label for="key-name">{text("createName")}</label>
          <input id="key-name" value={name.value} aria-describedby="name-hint" maxLength={253} autocapitalize="off" spellcheck={false} onInput={(event) => (name.value = event.currentTarget.value)} />
          <small id="name-hint" class="quiet">{text("createNameHint")}</small>
        </div>
      </div>
      <Scope of={chosen} kinds={kinds} />
      <Preview scope={chosen.lines()} ready={chosen.ready()} />
      <Lifetime of={ttl} offered={lifetimes}>
        <label class="choice">
          <input type="checkbox" checked={idle.value} disabled={ttl.value === 0} onChange={(event) => (idle.value = event.currentTarget.checked)} />
          {text("createIdle")}
        </label>
      </Lifetime>
      <details>
        <summary>{text("asKubectl")}</summary>
        <pre tabIndex={0}>{`kubectl create -f - -o jsonpath='{.spec.key}' <<'END'\n${body.value}END`}</pre>
      </details>
    </FormDialog>
  );
}

/** Shows a new key, once. It leaves the page when the dialog closes. */
export function Once({ of, close }: { of: Key; close: () => void }) {
  useSecret();
  const shown = useSignal(false);
  const key = of.spec.key ?? "";
  return (
    <Dialog title={text("onceTitle")}>
      <p>{text("onceLead")}</p>
      <p class="secret"><code>{shown.value ? key : "•".repeat(24)}</code></p>
      <div class="buttons start">
        <button type="button" aria-pressed={shown.value} onClick={() => (shown.value = !shown.value)}>{text(shown.value ? "hide" : "show")}</button>
        <Copy what={() => key} />
        <button type="button" onClick={() => download(`${of.metadata.name}.key`, `${key}\n`)}>{text("download")}</button>
      </div>
      <p class="quiet"><code>kubectl --token "$(cat {quoted(`${of.metadata.name}.key`)})" get ownedaccesskeys</code></p>
      <div class="buttons">
        <button type="button" class="primary" onClick={close}>{text("kept")}</button>
      </div>
    </Dialog>
  );
}
