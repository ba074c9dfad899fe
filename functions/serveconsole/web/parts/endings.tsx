import { type Cluster, day, formatDateTime, formatDistance, home, type Key, listsClusters, text } from "../shared";
import { Bars } from "./bars";
import { countInBars } from "./timebars";

/** How many days are shown. */
const days = 90;

/** The access keys and the signers of virtual clusters that end in the next 90 days, by day, with their names behind it. Nothing is shown if nothing ends. */
export function Endings({ keys, signers }: { keys: Key[]; signers: { cluster: Cluster; end: string }[] }) {
  const now = Date.now();
  const shown = [
    ...keys.filter((key) => !key.spec.disabled).map(({ metadata: { name }, status }) => (
      { instant: Date.parse(status?.expirationTimestamp ?? ""), name, link: `${home}/keys?${new URLSearchParams({ name })}`, isSigner: false }
    )),
    ...signers.map(({ cluster: { metadata: { namespace, name } }, end }) => (
      { instant: Date.parse(end), name: `${namespace}/${name}`, link: listsClusters() ? `${home}/clusters?${new URLSearchParams({ name: `${namespace}/${name}` })}` : undefined, isSigner: true }
    )),
  ].filter(({ instant }) => instant > now && instant < now + days * day).sort((a, b) => a.instant - b.instant);
  if (shown.length === 0) return null;
  const bars = countInBars("day", now, now + days * day, shown.map(({ instant, isSigner }) => ({ instant, isUpper: isSigner })));
  return (
    <section class="card endings">
      <Bars bars={bars} step="day" words={{ title: "endings.title", bar: "endings.bar", lower: "page.keys", upper: "endings.signers" }}>
        <thead><tr><th scope="col">{text("audit.when")}</th><th scope="col">{text("audit.what")}</th></tr></thead>
        <tbody>
          {shown.map(({ instant, name, link, isSigner }) => {
            const time = new Date(instant).toISOString();
            return (
              <tr>
                <td><time dateTime={time}>{formatDateTime(time)} ({formatDistance(time)})</time></td>
                <th scope="row">{text(isSigner ? "endings.signer" : "signin.accessKey")} {link ? <a href={link}>{name}</a> : name}</th>
              </tr>
            );
          })}
        </tbody>
      </Bars>
    </section>
  );
}
