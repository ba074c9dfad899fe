import { signal } from "@preact/signals";

/** Who the session acts as, as far as the console reads it. */
export interface Self {
  user?: { name: string; displayName?: string };
  team?: { name: string };
  subject?: string;
  groups?: string[];
  accessKey?: string;
  accessKeyType?: string;
}

/** The person who is signed in. */
export const person = signal<Self | null>(null);

/** The name that is shown for somebody. */
export function nameOf(self: Self): string {
  return self.user?.displayName || self.user?.name || self.team?.name || self.subject || "";
}
