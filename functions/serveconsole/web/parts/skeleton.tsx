import { text } from "../texts";

/** Gray rows in place of what is being loaded. */
export function Skeleton({ rows = 5 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="hidden">{text("state.loading")}</span>
      {Array.from({ length: rows }, () => <span class="bone" aria-hidden="true" />)}
    </div>
  );
}
