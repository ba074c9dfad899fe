import { useSignal } from "@preact/signals";
import { SignInTrial } from "../pages/signintrial";
import { text } from "../texts";

/** The connectors of the configuration, and a sign-in on trial at each of them. */
export function Connectors({ of }: { of: { id: string; name?: string }[] }) {
  const tried = useSignal("");
  return (
    <>
      <h2>{text("connectors")}</h2>
      <p class="quiet">{text("connectorsLead")}</p>
      <ul class="rows">
        {of.map(({ id, name }) => (
          <li>
            <span><code>{id}</code> {name && <span class="quiet">{name}</span>}</span>
            <button type="button" aria-label={text("tryTitle", { name: id })} onClick={() => (tried.value = id)}>{text("tryAsk")}</button>
          </li>
        ))}
      </ul>
      {tried.value && <SignInTrial connector={tried.value} close={() => (tried.value = "")} />}
    </>
  );
}
