import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { VNode } from "preact";
import { live } from "../live";
import { may } from "../rights";
import { text, type Text } from "../texts";
import { Warnings } from "./frames";
import { Gone, List, useAddress, useOpened, type Timed, type Words } from "./list";

/** Says what somebody has done, and what the platform warned of. The list is read again. */
export type Tell = (said?: string, warnings?: string[]) => void;

/** The page of a kind: its list, the object that the address opens, and the form for a new one. */
export function Kind<T extends Timed>(props: {
  path: string; resource: string; words: Words; command: string; add: Text; wide?: string[]; off?: (object: T) => boolean;
  create: (close: () => void, made: Tell) => VNode; one: (object: T, close: () => void, changed: Tell) => VNode;
}) {
  const { path, resource, words, command, add, create, one, ...columns } = props;
  const objects = useMemo(() => live<T>(path), []);
  const address = useAddress();
  const { opened } = address;
  const creating = useSignal(false);
  const said = useSignal("");
  const warned = useSignal<string[]>([]);
  const object = useOpened(objects, opened.value, `${path}/${encodeURIComponent(opened.value)}`);
  const close = () => { opened.value = ""; };
  const drop = () => { creating.value = false; };
  const tell: Tell = (what = "", warnings = []) => {
    said.value = what;
    warned.value = warnings;
    void objects.refresh();
  };
  return (
    <>
      <List
        of={objects} words={words} address={address} command={command} {...columns}
        buttons={may("create", resource) && <button type="button" class="primary" onClick={() => { creating.value = true; }}>{text(add)}</button>}
      >
        <div role="status">
          {said.value && <p class="decision yes">{said.value}</p>}
          <Warnings of={warned.value} />
        </div>
      </List>
      {creating.value && create(drop, (what, warnings) => { drop(); tell(what, warnings); })}
      {object === null && <Gone name={opened.value} close={close} />}
      {object && one(object, close, tell)}
    </>
  );
}
