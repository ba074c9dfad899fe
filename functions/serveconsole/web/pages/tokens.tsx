import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import {
  Copy, DetailsDialog, Dialog, download, exact, Fact, FormDialog, Gone, group, Lifetime, List, live, may, type Meta, ownerOf, quoted,
  Scope, type Text, text, Time, useAddress, useAttempt, useOpened, usePermitted, useScope, useSecret, useWrite, Warnings, warningsOf,
  type Words,
} from "../shared";

/** The record of a token. Only the response to a request for one contains the token. */
interface Token {
  metadata: Meta;
  spec: { ttl?: number; scope?: Record<string, unknown> };
  status: {
    token?: string; expirationTimestamp?: string; user?: string; team?: string; subject?: string; accessKey?: string; userAgent?: string;
  };
}

const path = `${group}/directclusterendpointtokens`;
const words: Words = {
  title: "tokens", lead: "tokensLead", count: "entries", countOne: "entriesOne", countFiltered: "entriesFiltered", empty: "tokensEmpty",
};
const lifetimes: [number, Text][] = [[600, "tenMinutes"], [3600, "hour"], [28_800, "eightHours"], [86_400, "day"]];
const kinds: [string, Text][] = [["all", "mayAll"], ["project", "mayProject"], ["cluster", "mayCluster"], ["yaml", "mayYaml"]];

/** Returns the claims of a token, or null if it is none that has them. */
export function claimsOf(token: string): Record<string, unknown> | null {
  try {
    const bytes = Uint8Array.from(atob((token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof claims === "object" && claims !== null ? (claims as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

const claimTexts: Record<string, Text> = {
  iss: "claimIss", sub: "claimSub", aud: "claimAud", iat: "claimIat", nbf: "claimNbf", exp: "claimExp", jti: "claimJti", groups: "claimGroups", scope: "claimScope",
};

function Claims({ of }: { of: Record<string, unknown> }) {
  return (
    <dl>
      {Object.entries(of).map(([name, value]) => (
        <Fact name={claimTexts[name] ? `${text(claimTexts[name])} (${name})` : name}>
          {["iat", "nbf", "exp"].includes(name) && typeof value === "number" ? exact(new Date(value * 1000).toISOString())
            : typeof value === "string" ? value : <code>{JSON.stringify(value)}</code>}
        </Fact>
      ))}
    </dl>
  );
}

function Issue({ close, made }: { close: () => void; made: (token: Token, warnings: string[]) => void }) {
  const ttl = useSignal(3600);
  const chosen = useScope("all");
  const write = useWrite(path);
  const attempt = useAttempt();
  const scope = chosen.lines();
  const body = ["apiVersion: management.platform.sh/v1", "kind: DirectClusterEndpointToken", "spec:", `  ttl: ${ttl.value}`, ...(scope ? [`  scope:${scope}`] : []), ""].join("\n");
  const submit = () => write.run(() => attempt(`${path}?fieldValidation=Strict`, body, "application/yaml"), async (response) => (
    made((await response.json()) as Token, warningsOf(response))
  ));
  return (
    <FormDialog title={text("newToken")} close={close} wide submit={submit} write={write} button="tokenMake" focused>
      <p class="quiet">{text("tokenLead")}</p>
      <Scope of={chosen} kinds={kinds} />
      <Lifetime of={ttl} offered={lifetimes} />
      <details>
        <summary>{text("asKubectl")}</summary>
        <pre tabIndex={0}>{`kubectl create -f - -o jsonpath='{.status.token}' <<'END'\n${body}END`}</pre>
      </details>
    </FormDialog>
  );
}

function Once({ of, warnings, close }: { of: Token; warnings: string[]; close: () => void }) {
  useSecret();
  const shown = useSignal(false);
  const token = of.status.token ?? "";
  const claims = claimsOf(token);
  return (
    <Dialog title={text("tokenOnce")} wide>
      <p>{text("tokenOnceLead")}</p>
      <Warnings of={warnings} />
      <p class="secret"><code>{shown.value ? token : "•".repeat(24)}</code></p>
      <div class="buttons start">
        <button type="button" aria-pressed={shown.value} onClick={() => (shown.value = !shown.value)}>{text(shown.value ? "hide" : "show")}</button>
        <Copy what={() => token} />
        <button type="button" onClick={() => download(`${of.metadata.name}.jwt`, token)}>{text("download")}</button>
      </div>
      <h3>{text("claims")}</h3>
      {claims && <Claims of={claims} />}
      <div class="buttons"><button type="button" class="primary" onClick={close}>{text("kept")}</button></div>
    </Dialog>
  );
}

function One({ token, close, changed }: { token: Token; close: () => void; changed: () => void }) {
  const { name, uid, creationTimestamp } = token.metadata;
  const { problem, remove } = useWrite(path);
  const [revoke] = usePermitted([{ verb: "delete", resource: "directclusterendpointtokens", name }], uid);
  return (
    <DetailsDialog
      title={name} close={close} problem={problem.value} command={`kubectl delete directclusterendpointtoken ${quoted(name)}`}
      facts={
        <>
          <Fact name={text("owner")}>{ownerOf({ metadata: token.metadata, spec: token.status })}</Fact>
          <Fact name={text("accessKey")}>{token.status.accessKey}</Fact>
          <Fact name={text("claimJti")}><code>{uid}</code></Fact>
          <Fact name={text("created")}><Time of={creationTimestamp} none="" /></Fact>
          <Fact name={text("ends")}><Time of={token.status.expirationTimestamp} none="" /></Fact>
          <Fact name={text("userAgent")}>{token.status.userAgent}</Fact>
        </>
      }
      buttons={revoke && (
        <button type="button" class="danger quietly" onClick={() => void remove(token.metadata, () => { close(); changed(); })}>{text("revoke")}</button>
      )}
    >
      <h3>{text("scope")}</h3>
      {token.spec.scope ? <pre tabIndex={0}>{JSON.stringify(token.spec.scope, null, 2)}</pre> : <p>{text("scopeNone")}</p>}
      <p class="quiet">{text("revokeLead")}</p>
    </DetailsDialog>
  );
}

/** The records of the tokens that the caller may see. */
export function Tokens() {
  const tokens = useMemo(() => live<Token>(path), []);
  const address = useAddress();
  const { opened } = address;
  const issuing = useSignal(false);
  const made = useSignal<{ token: Token; warnings: string[] } | null>(null);
  const token = useOpened(tokens, opened.value, `${path}/${encodeURIComponent(opened.value)}`);
  return (
    <>
      <List
        of={tokens} words={words} address={address} wide={["Scope", "User Agent"]} command="kubectl get directclusterendpointtokens -o wide --watch"
        buttons={may("create", "directclusterendpointtokens") && (
          <button type="button" class="primary" onClick={() => (issuing.value = true)}>{text("newToken")}</button>
        )}
      />
      {issuing.value && (
        <Issue
          close={() => (issuing.value = false)}
          made={(token, warnings) => {
            issuing.value = false;
            made.value = { token, warnings };
            void tokens.refresh();
          }}
        />
      )}
      {made.value && <Once of={made.value.token} warnings={made.value.warnings} close={() => (made.value = null)} />}
      {token === null && <Gone name={opened.value} close={() => (opened.value = "")} />}
      {token && <One token={token} close={() => (opened.value = "")} changed={() => void tokens.refresh()} />}
    </>
  );
}
