import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { VNode } from "preact";
import { Refusal } from "../api";
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
  const { openedName, creating } = address;
  const message = useSignal("");
  const warnings = useSignal<string[]>([]);
  const object = useOpened(objects, openedName.value, `${path}/${encodeURIComponent(openedName.value)}`);
  const close = () => { openedName.value = ""; };
  const closeForm = () => { creating.value = ""; };
  const announce: Announce = (what = "", newWarnings = []) => {
    message.value = what;
    warnings.value = newWarnings;
    void objects.refresh();
  };
  return (
    <>
      <List
        list={objects} texts={words} address={address} command={command} {...columns}
        buttons={may("create", resource) && <button type="button" class="primary" onClick={() => { creating.value = "yes"; }}>{text(newLabel)}</button>}
      >
        <div role="status">
          {message.value && <p class="decision yes">{message.value}</p>}
          <Warnings warnings={warnings.value} />
        </div>
      </List>
      {creating.value && may("create", resource) && create(closeForm, (what, warnings) => { closeForm(); announce(what, warnings); })}
      {object instanceof Refusal ? <AbsentDialog name={openedName.value} refusal={object} close={close} /> : object && details(object, close, announce)}
    </>
  );
}
