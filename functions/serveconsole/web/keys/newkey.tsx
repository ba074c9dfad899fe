import { useComputed, useSignal } from "@preact/signals";
import { useSecret } from "../branding";
import { useIdempotentPost } from "../parts/idempotency";
import { CopyButton, quoteForShell } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { download } from "../parts/download";
import { FormDialog } from "../parts/frames";
import { Lifetime } from "../parts/lifetime";
import { ScopeField, useScopeChoice } from "../parts/scope";
import { useWrite } from "../parts/write";
import { person } from "../person";
import { text, type Text } from "../texts";
import type { Key } from "../kinds/accesskey";
import { ScopePreview } from "../parts/scopepreview";
import { keysPath } from "../pages/keys";

const lifetimes: [number, Text][] = [[3600, "lifetime.hour"], [28_800, "lifetime.eightHours"], [86_400, "lifetime.day"], [604_800, "lifetime.week"], [2_592_000, "lifetime.month"], [0, "lifetime.none"]];
const kinds: [string, Text][] = [
  ["read", "scope.read"], ["project", "scope.project"], ["cluster", "scope.cluster"], ["nothing", "scope.nothing"], ["all", "scope.all"], ["yaml", "scope.yaml"],
];

/** The dialog that creates a key. */
export function NewKeyDialog({ close, created }: { close: () => void; created: (key: Key) => void }) {
  const name = useSignal("");
  const displayName = useSignal("");
  const ttl = useSignal(86_400);
  const afterLastActivity = useSignal(false);
  // A session with a scope creates keys with the same scope.
  const sessionScope = person.value?.accessKeyScope;
  const scopeChoice = useScopeChoice(sessionScope ? "all" : "read", sessionScope);
  const write = useWrite(keysPath);
  const attempt = useIdempotentPost();

  const body = useComputed(() => {
    const scope = scopeChoice.lines();
    return [
      "apiVersion: management.platform.sh/v1",
      "kind: OwnedAccessKey",
      name.value ? `metadata: {name: ${JSON.stringify(name.value)}}` : 'metadata: {generateName: "key-"}',
      "spec:",
      `  displayName: ${JSON.stringify(displayName.value)}`,
      `  ttl: ${ttl.value}`,
      ...(afterLastActivity.value && ttl.value > 0 ? ["  ttlAfterLastActivity: true"] : []),
      ...(scope ? [`  scope:${scope}`] : []),
      "",
    ].join("\n");
  });

  const submit = () => write.run(() => attempt(`${keysPath}?fieldValidation=Strict`, body.value, "application/yaml"), async (response) => created((await response.json()) as Key));

  return (
    <FormDialog title={text("keys.new")} close={close} wide submit={submit} write={write} button="keys.create">
      <p class="quiet">{text("keys.createLead")}</p>
      <div class="two">
        <label>
          {text("keys.purpose")}
          <input value={displayName.value} maxLength={256} onInput={(event) => (displayName.value = event.currentTarget.value)} autofocus />
        </label>
        <div class="field">
          <label for="key-name">{text("field.name")}</label>
          <input id="key-name" value={name.value} aria-describedby="name-hint" maxLength={253} autocapitalize="off" spellcheck={false} onInput={(event) => (name.value = event.currentTarget.value)} />
          <small id="name-hint" class="quiet">{text("keys.nameHint")}</small>
        </div>
      </div>
      <ScopeField choice={scopeChoice} kinds={kinds} />
      <ScopePreview scope={scopeChoice.lines()} ready={scopeChoice.isComplete()} />
      <Lifetime seconds={ttl} choices={lifetimes}>
        <label class="choice">
          <input type="checkbox" checked={afterLastActivity.value} disabled={ttl.value === 0} onChange={(event) => (afterLastActivity.value = event.currentTarget.checked)} />
          {text("keys.afterLastActivity")}
        </label>
      </Lifetime>
      <details>
        <summary>{text("command.kubectl")}</summary>
        <pre tabIndex={0}>{`kubectl create -f - -o jsonpath='{.spec.key}' <<'END'\n${body.value}END`}</pre>
      </details>
    </FormDialog>
  );
}

/** Shows a new key once. The page keeps nothing of it after the dialog is closed. */
export function NewKeySecret({ accessKey, close }: { accessKey: Key; close: () => void }) {
  useSecret();
  const visible = useSignal(false);
  const secret = accessKey.spec.key ?? "";
  return (
    <Dialog title={text("keys.shownOnce")}>
      <p>{text("keys.shownOnceLead")}</p>
      <p class="secret"><code>{visible.value ? secret : "•".repeat(24)}</code></p>
      <div class="buttons start">
        <button type="button" aria-pressed={visible.value} onClick={() => (visible.value = !visible.value)}>{text(visible.value ? "action.hide" : "action.show")}</button>
        <CopyButton content={() => secret} />
        <button type="button" onClick={() => download(`${accessKey.metadata.name}.key`, `${secret}\n`)}>{text("action.download")}</button>
      </div>
      <p class="quiet"><code>kubectl --token "$(cat {quoteForShell(`${accessKey.metadata.name}.key`)})" get ownedaccesskeys</code></p>
      <div class="buttons">
        <button type="button" class="primary" onClick={close}>{text("action.saved")}</button>
      </div>
    </Dialog>
  );
}
