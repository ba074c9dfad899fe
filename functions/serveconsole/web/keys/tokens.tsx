import { useEffect } from "preact/hooks";
import { Chip, formatDateTime, formatDistance, group, home, type Key, listPages, type Meta, Problem, ScopeText, Skeleton, text } from "../shared";
import { useReading } from "../parts/reading";

/** How many tokens a request asks for, and after how many requests the tab waits for a click. The API may answer with fewer: it looks for the tokens of a key among all of them. */
const pageSize = 200;
const requestLimit = 3;

/** The fields of the record of a token that the tab shows. */
interface Token {
  metadata: Meta;
  status: { expirationTimestamp?: string };
}

/** A token, with its scope as the Table of the API shows it. */
interface TokenLine {
  token: Token;
  scope: string;
}

/** What has been read, and where the rest begins. Empty: there is no more. */
interface Reading {
  lines: TokenLine[];
  position: string;
}

/** When a token ends, in milliseconds. */
const endOf = ({ token }: TokenLine) => Date.parse(token.status.expirationTimestamp ?? "") || Infinity;

/** Whether a token works, and until when. */
function State({ end, keyDisabled }: { end?: string; keyDisabled: boolean }) {
  if (end && Date.parse(end) <= Date.now()) return <Chip kind="bad">{text("state.expired")}</Chip>;
  if (keyDisabled) return <Chip kind="off">{text("keytokens.refused")}</Chip>;
  return <Chip kind="good">{end ? <time dateTime={end} title={formatDateTime(end)}>{text("keytokens.ends", { when: formatDistance(end) })}</time> : text("state.neverExpires")}</Chip>;
}

/** The tokens for connected clusters that were issued with a key. The API selects them. Tokens that the caller may not see are absent. */
export function KeyTokens({ accessKey: { metadata: { name, uid }, spec } }: { accessKey: Key }) {
  const { busy, reading, problem, read } = useReading<Reading>(async (last, signal) => {
    const lines = [...(last?.lines ?? [])];
    let position = last?.position ?? "";
    const query = { fieldSelector: `status.createdBy.uid=${uid}`, limit: String(pageSize) };
    for await (const { rows = [], columnDefinitions = [], metadata } of listPages<Token>(`${group}/directclusterendpointtokens`, query, { signal, position, most: requestLimit })) {
      const scope = columnDefinitions.findIndex((column) => column.name === "Scope");
      lines.push(...rows.map(({ object, cells }) => ({ token: object, scope: String(cells[scope] ?? "") })));
      position = metadata?.continue ?? "";
    }
    // Names are chosen at random: the token that works longest is first.
    return { lines: lines.sort((a, b) => endOf(b) - endOf(a)), position };
  });
  useEffect(() => {
    reading.value = null;
    void read(null);
  }, [uid]);
  const { lines, position } = reading.value ?? { lines: [], position: "" };
  return (
    <div aria-busy={busy.value}>
      <p class="quiet">{text(spec.disabled ? "keytokens.leadDisabled" : "keytokens.lead", { name })}</p>
      <Problem refusal={problem.value} />
      {reading.value === null ? !problem.value && <Skeleton rows={2} /> : (
        <>
          <p role="status">
            {position !== "" ? text("keytokens.partial", { count: lines.length }) : lines.length === 0 ? text("keytokens.empty") : text(lines.length === 1 ? "count.token" : "count.tokens", { count: lines.length })}
          </p>
          {lines.length > 0 && (
            <ul class="rows">
              {lines.map(({ token: { metadata, status }, scope }) => (
                <li key={metadata.uid}>
                  <span>
                    <a href={`${home}/tokens?${new URLSearchParams({ name: metadata.name })}`}>{metadata.name}</a>
                    <span class="second">{scope === "<all>" ? text("keytokens.everywhere") : <ScopeText scope={scope} />}</span>
                  </span>
                  <State end={status.expirationTimestamp} keyDisabled={spec.disabled ?? false} />
                </li>
              ))}
            </ul>
          )}
        </>
      )}
      {position !== "" && <p class="buttons start"><button type="button" disabled={busy.value} onClick={() => void read(reading.value)}>{text("list.more")}</button></p>}
    </div>
  );
}
