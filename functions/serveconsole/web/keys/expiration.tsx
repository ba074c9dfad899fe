import { useSignal } from "@preact/signals";
import { type Key, keysPath, text, type Text, useWrite, warningsOf } from "../shared";
import { FormDialog } from "../parts/form";
import { Lifetime, type LifetimeChoice } from "../parts/lifetime";

/** The usual lifetimes of keys that work on. */
const extensions: [number, Text][] = [[86_400, "lifetime.day"], [604_800, "lifetime.week"], [2_592_000, "lifetime.month"], [7_776_000, "lifetime.quarter"], [0, "lifetime.none"]];

const dates = new Intl.DateTimeFormat("en", { dateStyle: "medium" });

/** Returns the date in the local time zone. */
const formatDate = (instant: number) => dates.format(instant);

/** Returns the ttl of a key that is to work for some more seconds: from now, or from its last use if the key has ttlAfterLastActivity. 0 is no end. */
export function extendedTTL({ metadata, spec }: Key, seconds: number): number {
  const age = spec.ttlAfterLastActivity ? 0 : Math.ceil((Date.now() - Date.parse(metadata.creationTimestamp)) / 1000);
  return seconds === 0 ? 0 : age + seconds;
}

/** Returns when a key ends, in milliseconds: Infinity if it does not. */
const endOf = ({ status }: Key) => (status?.expirationTimestamp ? Date.parse(status.expirationTimestamp) : Infinity);

/** Returns when a key would end that works for some more seconds, in milliseconds. 0 is no end. */
function extendedEnd({ metadata, spec, status }: Key, seconds: number): number {
  if (seconds === 0) return Infinity;
  return seconds * 1000 + (spec.ttlAfterLastActivity ? Date.parse(status?.lastActivity ?? metadata.creationTimestamp) : Date.now());
}

/** Returns the lifetimes with the dates of their ends. */
const datedExtensions = (key: Key) => extensions.map(([seconds, label]): LifetimeChoice => [seconds, label, seconds ? formatDate(extendedEnd(key, seconds)) : undefined]);

/** Reports whether a key that works for some more seconds ends later than now. A minute is not later: the button that was just pressed would stay. */
export function isLater(key: Key, seconds: number): boolean {
  return extendedEnd(key, seconds) > endOf(key) + 60_000;
}

/** Returns the lifetimes that let a key end later than now. */
export const longerExtensions = (key: Key) => datedExtensions(key).filter(([seconds]) => isLater(key, seconds));

/** The dialog that changes the expiration of a key. To extend it, earlier ends are left out. */
export function ExpirationDialog({ accessKey, extend, close, changed }: { accessKey: Key; extend?: boolean; close: () => void; changed: (warnings: string[]) => void }) {
  const { name } = accessKey.metadata;
  const choices = extend ? longerExtensions(accessKey) : datedExtensions(accessKey);
  const remaining = useSignal((choices.find(([seconds]) => seconds === 604_800) ?? choices[0]!)[0]);
  const newEnd = extendedEnd(accessKey, remaining.value);
  const oldEnd = endOf(accessKey);
  const write = useWrite(keysPath);
  const submit = () => write.patch(name, { spec: { ttl: extendedTTL(accessKey, remaining.value) } }, (response) => changed(warningsOf(response)));
  return (
    <FormDialog title={text("keys.expirationOf", { name })} close={close} submit={submit} write={write} button="keys.changeExpiration" cancelLabel="action.back">
      <p>{text(accessKey.spec.ttlAfterLastActivity ? "keys.expirationIdle" : "keys.expirationLead")}</p>
      <Lifetime seconds={remaining} choices={choices} />
      <div role="status">
        {newEnd < oldEnd && <p class="decision">{text("keys.endsEarlier", { when: formatDate(newEnd), before: oldEnd === Infinity ? text("state.neverExpires") : formatDate(oldEnd) })}</p>}
      </div>
    </FormDialog>
  );
}
