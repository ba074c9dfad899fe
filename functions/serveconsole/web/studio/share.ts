/** What is in the studio: it is shared by link, and kept in files. */
export interface Work {
  configuration: string;
  tenant: string;
  host: string;
  /** The patches that are used. Empty: those for the kind of the object. */
  resource: string;
  name: string;
  namespace: string;
  mode: string;
  naming: string;
}

/** Why something that was opened is not shown. */
export class Unreadable extends Error {
  constructor(readonly why: "studio.linkBroken" | "studio.linkLarge" | "studio.linkVersion") {
    super(why);
  }
}

/** The largest work that is opened, in bytes as JSON. */
export const maxWorkBytes = 1 << 20;
/** Above this, a link is too long for many programs. */
export const maxLinkLength = 16 << 10;

const version = "1";
const fields = ["configuration", "tenant", "host", "resource", "name", "namespace", "mode", "naming"] as const;

/** Returns work as a text. */
export function workText(work: Work): string {
  return JSON.stringify(Object.fromEntries(fields.map((field) => [field, work[field]])));
}

/** Reads work from a text that anybody may have written. */
export function parseWork(text: string): Work {
  if (text.length > maxWorkBytes) throw new Unreadable("studio.linkLarge");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Unreadable("studio.linkBroken");
  }
  if (typeof value !== "object" || value === null) throw new Unreadable("studio.linkBroken");
  // Links and files of earlier versions have no naming.
  const values: Record<string, unknown> = { naming: "neutral", ...value };
  if (fields.some((field) => typeof values[field] !== "string")) throw new Unreadable("studio.linkBroken");
  return Object.fromEntries(fields.map((field) => [field, values[field]])) as unknown as Work;
}

/** Returns work as the part of an address that browsers send to no server. */
export async function workFragment(work: Work): Promise<string> {
  const packed = new Blob([workText(work)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of new Uint8Array(await new Response(packed).arrayBuffer())) binary += String.fromCharCode(byte);
  return `#${version}${btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** Reads work from the part of an address after #, which anybody may have written. It unpacks no more than the largest work. */
export async function parseFragment(text: string): Promise<Work> {
  if (!text.startsWith(`#${version}`)) throw new Unreadable("studio.linkVersion");
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    const encoded = text.slice(1 + version.length);
    if (!/^[\w-]+$/.test(encoded)) throw new Error("not base64url");
    bytes = Uint8Array.from(atob(encoded.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  } catch {
    throw new Unreadable("studio.linkBroken");
  }
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (;;) {
    let next: ReadableStreamReadResult<Uint8Array>;
    try {
      next = await reader.read();
    } catch {
      throw new Unreadable("studio.linkBroken");
    }
    if (next.done) break;
    size += next.value.length;
    if (size > maxWorkBytes) {
      await reader.cancel().catch(() => undefined);
      throw new Unreadable("studio.linkLarge");
    }
    parts.push(next.value as Uint8Array<ArrayBuffer>);
  }
  let unpacked: string;
  try {
    unpacked = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await new Blob(parts).arrayBuffer());
  } catch {
    throw new Unreadable("studio.linkBroken");
  }
  return parseWork(unpacked);
}
