// The first script of the console: what it begins with, and what its pages share. Pages that are loaded later import from here. So each of
// them reaches everything in this script, and the bundler leaves all of it in one chunk: it is one request before the first row.
import "./main";

export * from "./api";
export * from "./live";
export * from "./branding";
export * from "./person";
export * from "./rights";
export * from "./texts";
export * from "./times";
export * from "./parts/idempotency";
export * from "./parts/command";
export * from "./parts/dialog";
export * from "./parts/download";
export * from "./parts/facts";
export * from "./parts/frames";
export * from "./parts/list";
export * from "./parts/problem";
export * from "./parts/deletedialog";
export * from "./parts/write";
export * from "./kinds/virtualcluster";
export * from "./kinds/accesskey";
export * from "./parts/scopepreview";
export * from "./keys/details";
export { keysPath } from "./pages/keys";
export { Initials } from "./parts/initials";
export { Skeleton } from "./parts/skeleton";
export { UserText } from "./parts/usertext";
