/** Returns the claims of a JWT, or null if the token is not a JWT. */
export function claimsOf(token: string): Record<string, unknown> | null {
  try {
    const bytes = Uint8Array.from(atob((token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof claims === "object" && claims !== null ? (claims as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
