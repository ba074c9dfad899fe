/** A small circle with the initials of a name. */
export function Initials({ name }: { name: string }) {
  const words = name.split(/[\s._@-]+/).filter(Boolean);
  const letters = [words[0], words.length > 1 ? words.at(-1) : ""].map((word) => [...(word ?? "")][0] ?? "").join("");
  return <span class="initials" aria-hidden="true">{letters.toUpperCase()}</span>;
}
