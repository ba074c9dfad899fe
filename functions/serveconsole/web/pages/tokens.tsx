import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import {
  DetailsDialog, formatDateTime, Fact, AbsentDialog, group, home, List, watchList, may, type Meta, person, quoteForShell, Refusal,
  type Text, text, Time, useAddress, useIdempotentPost, useOpened, usePermitted, useWrite, Warnings, warningsOf,
  type ListTexts,
} from "../shared";
import { FormDialog } from "../parts/form";
import { Lifetime } from "../parts/lifetime";
import { OwnerName } from "../parts/ownername";
import { ScopeField, useScopeChoice } from "../parts/scope";
import { type Scope, ScopeSource, ScopeWords } from "../parts/scopewords";
import { Secret, SecretDialog } from "../parts/secret";
import { claimsOf } from "../tokens/claims";

/** The record of a token. Only the response to a request for one contains the token. */
interface Token {
  metadata: Meta;
  spec: { ttl?: number; scope?: Scope };
  status: {
    token?: string; expirationTimestamp?: string; user?: string; team?: string; subject?: string; accessKey?: string; userAgent?: string;
  };
}

const path = `${group}/directclusterendpointtokens`;
const words: ListTexts = {
  title: "page.tokens", lead: "tokens.lead", count: "list.count", countOne: "list.countOne", countFiltered: "list.countFiltered", empty: "tokens.empty",
};
const lifetimes: [number, Text][] = [[600, "lifetime.tenMinutes"], [3600, "lifetime.hour"], [28_800, "lifetime.eightHours"], [86_400, "lifetime.day"]];
const kinds: [string, Text][] = [["cluster", "scope.cluster"], ["project", "scope.project"], ["all", "scope.all"], ["yaml", "scope.yaml"]];

const claimTexts: Record<string, Text> = {
  iss: "claim.iss", sub: "claim.sub", aud: "claim.aud", iat: "claim.iat", nbf: "claim.nbf", exp: "claim.exp", jti: "claim.jti", groups: "claim.groups", scope: "claim.scope",
};

function Claims({ claims }: { claims: Record<string, unknown> }) {
  return (
    <dl>
      {Object.entries(claims).map(([name, value]) => (
        <Fact name={claimTexts[name] ? `${text(claimTexts[name])} (${name})` : name}>
          {["iat", "nbf", "exp"].includes(name) && typeof value === "number" ? formatDateTime(new Date(value * 1000).toISOString())
            : name === "scope" ? <ScopeWords scope={value as Scope} />
            : Array.isArray(value) ? value.join(", ")
            : typeof value === "string" ? value : <code>{JSON.stringify(value)}</code>}
        </Fact>
      ))}
    </dl>
  );
}

function NewTokenDialog({ close, created }: { close: () => void; created: (token: Token, secret: Secret, warnings: string[]) => void }) {
  const ttl = useSignal(3600);
  // The scope of the session may permit no virtual cluster.
  const scopeChoice = useScopeChoice(person.value?.accessKeyScope ? "all" : "cluster");
  const write = useWrite(path);
  const attempt = useIdempotentPost();
  const scope = scopeChoice.lines();
  const body = ["apiVersion: management.platform.sh/v1", "kind: DirectClusterEndpointToken", "spec:", `  ttl: ${ttl.value}`, ...(scope ? [`  scope:${scope}`] : []), ""].join("\n");
  const submit = () => write.run(async () => {
    await scopeChoice.check();
    return attempt(`${path}?fieldValidation=Strict`, body, "application/yaml");
  }, async (response) => {
    const { status: { token, ...status }, ...rest } = (await response.json()) as Token;
    created({ ...rest, status }, new Secret(token), warningsOf(response));
  });
  return (
    <FormDialog title={text("tokens.new")} close={close} wide submit={submit} write={write} button="tokens.issue">
      <p class="quiet">{text("tokens.newLead")}</p>
      <ScopeField choice={scopeChoice} kinds={kinds} />
      <Lifetime seconds={ttl} choices={lifetimes} />
      <details>
        <summary>{text("command.kubectl")}</summary>
        <pre tabIndex={0}>{`kubectl create -f - -o jsonpath='{.status.token}' <<'END'\n${body}END`}</pre>
      </details>
    </FormDialog>
  );
}

function NewTokenSecret({ record, secret, warnings, close }: { record: Token; secret: Secret; warnings: string[]; close: () => void }) {
  const claims = useMemo(() => claimsOf(secret.reveal()), []);
  return (
    <SecretDialog
      title={text("tokens.shownOnce")} wide lead={<><p>{text("tokens.shownOnceLead")}</p><Warnings warnings={warnings} /></>} file={`${record.metadata.name}.jwt`} secret={secret} close={close}
    >
      <h3>{text("tokens.claims")}</h3>
      {claims && <Claims claims={claims} />}
    </SecretDialog>
  );
}

function TokenDetails({ token, close, changed }: { token: Token; close: () => void; changed: () => void }) {
  const { name, uid, creationTimestamp } = token.metadata;
  const { problem, remove } = useWrite(path);
  const [mayRevoke] = usePermitted([{ verb: "delete", resource: "directclusterendpointtokens", name }], uid);
  return (
    <DetailsDialog
      title={name} close={close} problem={problem.value} command={`kubectl delete directclusterendpointtoken ${quoteForShell(name)}`} events={{ resource: "directclusterendpointtokens", object: name }}
      facts={
        <>
          <Fact name={text("field.owner")}><OwnerName {...token.status} /></Fact>
          {token.status.accessKey && (
            <Fact name={text("signin.accessKey")}>
              {may("list", "ownedaccesskeys") ? <a href={`${home}/keys?${new URLSearchParams({ name: token.status.accessKey })}`}>{token.status.accessKey}</a> : token.status.accessKey}
            </Fact>
          )}
          <Fact name={text("claim.jti")}><code>{uid}</code></Fact>
          <Fact name={text("field.created")}><Time instant={creationTimestamp} none="" /></Fact>
          <Fact name={text("field.expires")}><Time instant={token.status.expirationTimestamp} none="" /></Fact>
          <Fact name={text("field.userAgent")}>{token.status.userAgent}</Fact>
        </>
      }
      buttons={mayRevoke && (
        <button type="button" class="danger quietly" onClick={() => void remove(token.metadata, () => { close(); changed(); })}>{text("tokens.revoke")}</button>
      )}
    >
      <h3>{text("scope.title")}</h3>
      {token.spec.scope ? <><ScopeWords scope={token.spec.scope} /><ScopeSource scope={token.spec.scope} /></> : <p>{text("scope.unlimited")}</p>}
      <p class="quiet">{text("tokens.revokeLead")}</p>
    </DetailsDialog>
  );
}

/** The records of the tokens that the caller may see. */
export function Tokens() {
  const tokens = useMemo(() => watchList<Token>(path), []);
  const address = useAddress();
  const { openedName, creating } = address;
  const createdToken = useSignal<{ token: Token; secret: Secret; warnings: string[] } | null>(null);
  const token = useOpened(tokens, openedName.value, `${path}/${encodeURIComponent(openedName.value)}`);
  return (
    <>
      <List
        list={tokens} texts={words} address={address} wide={["Scope", "User Agent"]} command="kubectl get directclusterendpointtokens -o wide --watch"
        buttons={may("create", "directclusterendpointtokens") && (
          <button type="button" class="primary" onClick={() => (creating.value = "yes")}>{text("tokens.new")}</button>
        )}
      />
      {creating.value && may("create", "directclusterendpointtokens") && (
        <NewTokenDialog
          close={() => (creating.value = "")}
          created={(token, secret, warnings) => {
            creating.value = "";
            createdToken.value = { token, secret, warnings };
            void tokens.refresh();
          }}
        />
      )}
      {createdToken.value && <NewTokenSecret record={createdToken.value.token} secret={createdToken.value.secret} warnings={createdToken.value.warnings} close={() => (createdToken.value = null)} />}
      {token instanceof Refusal ? <AbsentDialog name={openedName.value} refusal={token} close={() => (openedName.value = "")} /> : token && <TokenDetails token={token} close={() => (openedName.value = "")} changed={() => void tokens.refresh()} />}
    </>
  );
}
