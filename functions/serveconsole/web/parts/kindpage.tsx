import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { VNode } from "preact";
import { watchList } from "../live";
import { may } from "../rights";
import { text, type Text } from "../texts";
import { Warnings } from "./frames";
import { AbsentDialog, List, useAddress, useOpened, type TimedObject, type ListTexts } from "./list";

/** Shows what has been done, with the warnings of the API, and reads the list again. */
export type Announce = (message?: string, warnings?: string[]) => void;

/** The page of a kind: its list, the object that the address opens, and the form for a new one. */
export function KindPage<T extends TimedObject>(props: {
  path: string; resource: string; words: ListTexts; command: string; newLabel: Text; wide?: string[]; isOff?: (object: T) => boolean;
  create: (close: () => void, created: Announce) => VNode; details: (object: T, close: () => void, changed: Announce) => VNode;
}) {
  const { path, resource, words, command, newLabel, create, details, ...columns } = props;
  const objects = useMemo(() => watchList<T>(path), []);
  const address = useAddress();
  const { openedName } = address;
  const creating = useSignal(false);
  const message = useSignal("");
  const warnings = useSignal<string[]>([]);
  const object = useOpened(objects, openedName.value, `${path}/${encodeURIComponent(openedName.value)}`);
  const close = () => { openedName.value = ""; };
  const closeForm = () => { creating.value = false; };
  const announce: Announce = (what = "", newWarnings = []) => {
    message.value = what;
    warnings.value = newWarnings;
    void objects.refresh();
  };
  return (
    <>
      <List
        list={objects} texts={words} address={address} command={command} {...columns}
        buttons={may("create", resource) && <button type="button" class="primary" onClick={() => { creating.value = true; }}>{text(newLabel)}</button>}
      >
        <div role="status">
          {message.value && <p class="decision yes">{message.value}</p>}
          <Warnings warnings={warnings.value} />
        </div>
      </List>
      {creating.value && create(closeForm, (what, warnings) => { closeForm(); announce(what, warnings); })}
      {object === null && <AbsentDialog name={openedName.value} close={close} />}
      {object && details(object, close, announce)}
    </>
  );
}
