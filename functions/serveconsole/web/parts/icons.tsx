/** The paths of the icons, in a square of 20. */
const paths = {
  home: "M3 9.5l7-6 7 6V17h-4.8v-4.7H7.8V17H3z",
  clusters: "M10 2.5 16.5 6v8L10 17.5 3.5 14V6zM3.5 6 10 9.7 16.5 6M10 9.7v7.8",
  keys: "M3 10a3.5 3.5 0 1 0 7 0 3.5 3.5 0 1 0-7 0M10 10h7.5v3M14.5 10v2.3",
  tokens: "M2.5 5.5h15v2.7a1.8 1.8 0 0 0 0 3.6v2.7h-15v-2.7a1.8 1.8 0 0 0 0-3.6zM12 6v8",
  found: "M4 8.5a4.5 4.5 0 1 0 9 0 4.5 4.5 0 1 0-9 0M11.8 11.8 17 17M8.5 6.7v2.2M8.5 10.6v.4",
  studio: "M3 6h6M13 6h4M11 4v4M3 14h3M10 14h7M8 12v4",
  projects: "M2.5 4.5h5l2 2.3h8V16h-15z",
  people: "M7 6.5a3 3 0 1 0 6 0 3 3 0 1 0-6 0M4 17c.4-3 2.8-4.5 6-4.5s5.6 1.5 6 4.5",
  teams: "M5 7a2.7 2.7 0 1 0 5.4 0A2.7 2.7 0 1 0 5 7M2.5 16.5c.4-2.7 2.4-4 5.2-4s4.8 1.3 5.2 4M13 4.5a2.6 2.6 0 0 1 0 5M15 12.6c1.5.6 2.3 1.9 2.6 3.9",
  trustrules: "M10 2.5l6.3 2.3v4.7c0 3.9-2.6 6.5-6.3 8-3.7-1.5-6.3-4.1-6.3-8V4.8zM7.2 9.8l2.1 2.1 3.7-4",
  audit: "M3 5h14M3 9h6M3 13h5M10.5 13.5a3.5 3.5 0 1 0 7 0 3.5 3.5 0 1 0-7 0M14 11.7v1.9l1.3.9",
  config: "M7.5 10a2.5 2.5 0 1 0 5 0 2.5 2.5 0 1 0-5 0M10 2.5v3M10 14.5v3M2.5 10h3M14.5 10h3M4.7 4.7l2.1 2.1M13.2 13.2l2.1 2.1M15.3 4.7l-2.1 2.1M6.8 13.2l-2.1 2.1",
  search: "M3.5 8.5a5 5 0 1 0 10 0 5 5 0 1 0-10 0M12.2 12.2 17 17",
  menu: "M3 5.5h14M3 10h14M3 14.5h14",
  close: "M5 5l10 10M15 5 5 15",
  more: "M6 8l4 4 4-4",
};

/** The name of an icon. */
export type IconName = keyof typeof paths;

/** An icon in the color of the text. It is a picture of what the text says, and says nothing itself. */
export function Icon({ name }: { name: IconName }) {
  return <svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d={paths[name]} /></svg>;
}
