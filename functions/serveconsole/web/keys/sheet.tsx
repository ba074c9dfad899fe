import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import {
  AbsentDialog, asRefusal, Chip, CopyButton, CreatedObjects, currentTime, day, DeleteDialog, Dialog, Fact, formatDateTime,
  home, isAdmin, type Key, type KeyChildren, keysPath, lastUseText, may, person, Problem, quoteForShell, readChildren, Refusal, Skeleton, text, Time, usePermitted, useWrite, warningsOf,
} from "../shared";
import { Activity } from "../parts/activity";
import { type LifetimeChoice, lifetimeText } from "../parts/lifetime";
import { OwnerName } from "../parts/ownername";
import { TabbedSheet } from "../parts/tabs";
import type { FormField } from "../pages/keys";
import { ExpirationDialog, extendedTTL, isLater, longerExtensions } from "./expiration";
import { Lineage } from "./lineage";
import { KeyScope } from "./matrix";
import { mayOwn } from "./owners";
import { fieldsLike } from "./prefill";
import { KeyTokens } from "./tokens";

/** How long before its end a key gets buttons that let it work on, in milliseconds. */
const extensionPeriod = 7 * day;

/** The owner of a key. */
function Owner({ spec: { user, team, subject } }: Key) {
  return user || team ? <OwnerName user={user} team={team} /> : <>{text("keys.subject", { name: subject ?? "" })}</>;
}

/**
 * Buttons that let a key work on from now, each with one press. They stay while the sheet is open, so that the focus has a place, and do nothing
 * once the key ends later than they say.
 */
function Extension({ accessKey, changed }: { accessKey: Key; changed: (warnings: string[]) => void }) {
  const { metadata: { name }, status } = accessKey;
  const end = status?.expirationTimestamp;
  const offered = useSignal<LifetimeChoice[] | null>(null);
  const outcome = useSignal("");
  const { busy, problem, patch } = useWrite(keysPath);
  if (end && Date.parse(end) - Math.max(currentTime.value, Date.now()) < extensionPeriod) offered.value ??= longerExtensions(accessKey);
  if (!offered.value) return null;
  const extend = (seconds: number) => patch(name, { spec: { ttl: extendedTTL(accessKey, seconds) } }, async (response) => {
    const { status: extended } = (await response.json()) as Key;
    outcome.value = extended?.expirationTimestamp ? text("keys.extended", { when: formatDateTime(extended.expirationTimestamp) }) : text("keys.extendedForever");
    changed(warningsOf(response));
  });
  return (
    <div class="extension">
      <div role="group" aria-labelledby="extension" class="buttons start">
        <span id="extension">{text(accessKey.spec.ttlAfterLastActivity ? "keys.extendIdle" : "keys.extend")}</span>
        {offered.value.filter(([seconds]) => seconds > 0).map((choice) => {
          const [seconds, , date] = choice;
          const later = isLater(accessKey, seconds);
          return <button type="button" disabled={busy.value} aria-disabled={!later} onClick={() => { if (later) void extend(seconds); }}>{lifetimeText(choice)} <small class="quiet">{date}</small></button>;
        })}
      </div>
      <p role="status" class="quiet">{outcome.value}</p>
      <Problem refusal={problem.value} />
    </div>
  );
}

/** The facts of a key. */
function About({ accessKey, mayChange, changed }: { accessKey: Key; mayChange: boolean; changed: (warnings: string[]) => void }) {
  const { metadata: { name, creationTimestamp }, spec, status } = accessKey;
  return (
    <>
      <dl>
        <Fact name={text("field.name")}><span class="copied"><code>{name}</code> <CopyButton content={() => name} label={text("keys.copyName")} /></span></Fact>
        {spec.displayName && <Fact name={text("field.displayName")}>{spec.displayName}</Fact>}
        {spec.description && <Fact name={text("field.description")}>{spec.description}</Fact>}
        <Fact name={text("field.owner")}><Owner {...accessKey} /></Fact>
        {(spec.groups ?? []).length > 0 && <Fact name={text("claim.groups")}>{spec.groups?.map((group) => <><code>{group}</code> </>)}</Fact>}
        <Fact name={text("field.type")}>{spec.type}</Fact>
        <Fact name={text("field.state")}><Chip kind={spec.disabled ? "off" : "good"}>{text(status?.disabledByAdmin ? "state.disabledByAdmin" : spec.disabled ? "state.disabled" : "state.enabled")}</Chip></Fact>
        <Fact name={text("field.created")}><Time instant={creationTimestamp} none="" /></Fact>
        <Fact name={text("field.expires")}><Time instant={status?.expirationTimestamp} none={text("state.neverExpires")} /></Fact>
        <Fact name={text("keys.lastUsed")}><Time instant={status?.lastActivity} none={text("state.neverUsed")} /></Fact>
      </dl>
      {mayChange && <Extension accessKey={accessKey} changed={changed} />}
    </>
  );
}

/** The sheet of a key: its facts, what it may do, its lineage, the tokens that were issued with it, and its events. */
export function KeySheet(props: {
  name: string; row: Key | Refusal | undefined; tab: Signal<string>; open: (name: string) => void; changed: () => void; close: () => void;
  /** The address of the form of a new key with some fields, and what opens it here with the fields of a key. */
  addressOf: (fields: Record<FormField, string>) => string; createLike: (name: string, fields: Record<FormField, string>) => void;
}) {
  const { name, row, tab, open, changed, close, addressOf, createLike } = props;
  const key = row instanceof Refusal ? undefined : row;
  const { problem, patch } = useWrite(keysPath);
  const children = useSignal<KeyChildren | null>(null);
  const deleting = useSignal(false);
  const extending = useSignal(false);
  const warnings = useSignal<string[]>([]);
  const uid = key?.metadata.uid;
  const [mayChange = false, mayDelete] = usePermitted([
    { verb: "patch", resource: "ownedaccesskeys", name }, { verb: "delete", resource: "ownedaccesskeys", name },
  ], key?.metadata.resourceVersion);
  useEffect(() => {
    children.value = null;
    deleting.value = extending.value = false;
    warnings.value = [];
    if (uid) readChildren(uid).then((read) => (children.value = read), (failure) => (problem.value = asRefusal(failure)));
  }, [uid]);
  if (row instanceof Refusal) return <AbsentDialog name={name} refusal={row} close={close} absent="keys.absent" />;
  if (!key) return <Dialog title={name} close={close} sheet><Skeleton /></Dialog>;
  const announce = (announced: string[]) => {
    warnings.value = announced;
    changed();
  };
  const setDisabled = (disabled: boolean) => patch(name, { spec: { disabled } }, () => {
    deleting.value = false;
    changed();
  });
  let over = null;
  if (extending.value) {
    over = <ExpirationDialog accessKey={key} close={() => (extending.value = false)} changed={(announced) => { extending.value = false; announce(announced); }} />;
  } else if (deleting.value) {
    over = (
      <DeleteDialog
        path={keysPath} object={key.metadata} close={() => (deleting.value = false)} deleted={() => { close(); changed(); }}
        alternative={mayChange && !key.spec.disabled && <button type="button" onClick={() => void setDisabled(true)}>{text("keys.disableInstead")}</button>}
      >
        <p>{text("keys.deleteLead")}</p>
        {person.value?.accessKey === name && <p class="problem">{text("keys.deleteOwn")}</p>}
        <p>{lastUseText(key)}</p>
        {children.value && children.value.bound.keys.length + children.value.bound.tokens > 0 && (
          <>
            <p>{text("keys.deleteBound")}</p>
            <CreatedObjects children={children.value.bound} />
          </>
        )}
        <Problem refusal={problem.value} />
      </DeleteDialog>
    );
  }
  const like = fieldsLike(key);
  const tabs = [
    { name: "about", title: text("sheet.about"), content: () => <About key={uid} accessKey={key} mayChange={mayChange} changed={announce} /> },
    { name: "scope", title: text("scope.choose"), content: () => <KeyScope key={uid} accessKey={key} /> },
    { name: "lineage", title: text("keys.lineage"), content: () => <Lineage key={uid} accessKey={key} open={open} /> },
    ...(may("list", "directclusterendpointtokens") ? [{ name: "tokens", title: text("page.tokens"), content: () => <KeyTokens key={uid} accessKey={key} /> }] : []),
    ...(may("list", "auditevents") ? [{ name: "events", title: text("sheet.events"), content: () => <Activity selector={`accessKey=${name}`} link={`${home}/audit?${new URLSearchParams({ key: name })}`} /> }] : []),
  ];
  return (
    <TabbedSheet
      title={name} label={text("sheet.partsOf", { name })} tabs={tabs} chosen={tab} command={`kubectl describe ownedaccesskey ${quoteForShell(name)}`} problem={problem.value}
      warnings={warnings.value} close={close} over={over}
    >
      {mayDelete && <button type="button" class="danger quietly" onClick={() => { problem.value = null; deleting.value = true; }}>{text("action.delete")}</button>}
      {mayChange && !(key.spec.disabled && key.status?.disabledByAdmin && !isAdmin()) && (
        <button type="button" onClick={() => void setDisabled(!key.spec.disabled)}>{text(key.spec.disabled ? "action.enable" : "action.disable")}</button>
      )}
      {mayChange && <button type="button" onClick={() => { problem.value = null; extending.value = true; }}>{text("keys.changeExpirationAsk")}</button>}
      {may("create", "ownedaccesskeys") && mayOwn(key.spec) && (
        <a
          class="button" href={addressOf(like)}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
            event.preventDefault();
            createLike(name, like);
          }}
        >
          {text("keys.createLike")}
        </a>
      )}
    </TabbedSheet>
  );
}
