import type { Meta } from "../api";
import { ownerText } from "../person";

/** The fields of an access key that the console reads. */
export interface Key {
  metadata: Meta;
  spec: {
    key?: string;
    displayName?: string;
    description?: string;
    user?: string;
    team?: string;
    subject?: string;
    groups?: string[];
    type?: string;
    disabled?: boolean;
    ttl?: number;
    ttlAfterLastActivity?: boolean;
    scope?: Record<string, unknown>;
  };
  status?: {
    lastActivity?: string;
    expirationTimestamp?: string;
    disabledByAdmin?: boolean;
    lineage?: { name: string; uid: string; bounds?: boolean }[];
  };
}

/** Who a key acts as. */
export function ownerOf(key: Key): string {
  return ownerText(key.spec) || `subject:${key.spec.subject ?? ""}`;
}
