import { useSignal } from "@preact/signals";
import { SignInTrialDialog } from "./signintrial";
import { text } from "../texts";

/** The connectors of the configuration, each with a button for a sign-in on trial. */
export function Connectors({ connectors }: { connectors: { id: string; name?: string }[] }) {
  const trialConnector = useSignal("");
  return (
    <>
      <h2>{text("config.connectors")}</h2>
      <p class="quiet">{text("config.connectorsLead")}</p>
      <ul class="rows">
        {connectors.map(({ id, name }) => (
          <li>
            <span><code>{id}</code> {name && <span class="quiet">{name}</span>}</span>
            <button type="button" aria-label={text("trial.title", { name: id })} onClick={() => (trialConnector.value = id)}>{text("trial.ask")}</button>
          </li>
        ))}
      </ul>
      {trialConnector.value && <SignInTrialDialog connector={trialConnector.value} close={() => (trialConnector.value = "")} />}
    </>
  );
}
