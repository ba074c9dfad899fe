import { withoutTurns } from "../texts";

/** What somebody has written, beside other text. It has its own direction, and does not change the order of what stands beside it. */
export function UserText({ children }: { children: string }) {
  return <bdi>{withoutTurns(children)}</bdi>;
}
