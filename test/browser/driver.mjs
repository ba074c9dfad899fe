// What the stories share: the platform and the browser that browser_test.go names, windows of somebody, and what people do in them.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { deflateRawSync } from "node:zlib";
import { chromium } from "playwright-core";

export const [origin, keyFile, executablePath, exportFolder, openOrigin, pictureFolder] = process.argv.slice(2);
export const admin = readFileSync(keyFile, "utf8").trim();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const api = `${origin}/kubernetes/management/apis/management.platform.sh/v1`;
// On a busy machine, the process that draws for a GPU sometimes stops, and no page has a frame any more: what waits for one waits forever.
const launch = () => chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
export let browser = await launch();
/** Starts another browser in place of this one, which may never close: a page that hangs keeps it busy. */
export async function relaunch() {
  browser.close().catch(() => {});
  browser = await launch();
}
export const foreignOrigins = new Set();
/** Origins of pages that a story opens beside the console. */
export const allowedOrigins = new Set();
export const violations = [];
/** What violates the policy because a story tries it. */
let expected = /(?!)/;
/** Sets what violates the policy because a story tries it. Without a pattern, nothing does. */
export function expectViolations(pattern = /(?!)/) {
  expected = pattern;
}
/** For each page, what stops its scripts. A page that does not answer cannot get one. */
export const debuggers = new WeakMap();

/** A window of somebody, whose requests and violations of the policy are counted. */
export async function openWindow(options = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  debuggers.set(page, await context.newCDPSession(page));
  const problems = [];
  context.on("request", (request) => {
    const { protocol, origin: from } = new URL(request.url());
    if (!protocol.startsWith("http") || from === origin || allowedOrigins.has(from)) return;
    // What a page of another server loads is its own business.
    const by = request.isNavigationRequest() ? origin : new URL(request.frame().url()).origin;
    if (!allowedOrigins.has(by)) foreignOrigins.add(from);
  });
  page.on("pageerror", (failure) => problems.push(failure.message));
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted/.test(message.text()) && !expected.test(message.text())) violations.push(message.text());
  });
  return { context, page, problems };
}

export async function signIn(page, key = admin, path = "/console/keys", ready = page.getByRole("table")) {
  await page.goto(origin + path);
  await page.getByLabel("Access key", { exact: true }).fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await ready.waitFor();
}

/** Signs out in the menu of the person. The page is loaded anew. */
export async function signOut(page) {
  await page.locator("button.person").click();
  await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name: "Sign out", exact: true }).click()]);
}

/** Opens the patch studio. */
export async function openStudio(options, path = "/console/studio") {
  const opened = await openWindow(options);
  const { page } = opened;
  const editor = (name) => page.getByRole("textbox", { name });
  await signIn(page, admin, path, editor("Configuration"));
  const result = (name) => page.getByRole("region", { name, exact: true });
  const forward = result("From tenant to host");
  const back = result("From host to tenant");
  return {
    ...opened, editor, forward, back,
    evaluated: (side = forward) => side.getByText("Evaluated.", { exact: true }).waitFor(),
    async type(name, text) {
      await focus(editor(name));
      await page.keyboard.press("Control+a");
      await page.keyboard.insertText(text);
    },
  };
}

/** The fragment of a link with some work. */
export function studioLink(work, raw) {
  const bytes = raw ?? Buffer.from(JSON.stringify({
    configuration: "", tenant: "", host: "", resource: "", name: "t", namespace: "n", mode: "Single", ...work,
  }));
  return `#1${deflateRawSync(bytes).toString("base64url")}`;
}

/** Makes a key, and returns it after "I have saved it". */
export async function createKey(page, name) {
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("button", { name: "Show" }).click();
  const key = (await page.locator(".secret code").textContent()).trim();
  await page.getByRole("button", { name: "I have saved it" }).click();
  await page.getByRole("link", { name: `Open ${name}`, exact: true }).waitFor();
  return key;
}

/** Focuses an element when it is there to be seen: in a dialog that is not open yet, nothing can be focused. */
export async function focus(element) {
  await element.waitFor();
  await element.focus();
}

/** Goes to an element with the tab key alone. */
export async function tabTo(page, element) {
  await element.waitFor();
  let handle = await element.elementHandle();
  for (let left = 200; left > 0; left--) {
    const state = await handle.evaluate((it) => (it.getRootNode().activeElement === it ? "focused" : it.isConnected ? "" : "gone"));
    if (state === "focused") return;
    if (state === "gone") handle = await element.elementHandle();
    else await page.keyboard.press("Tab");
  }
  assert.fail(`the tab key does not reach ${element}`);
}

/** Uses a button or a link with the keyboard alone. */
export async function pressWithKeyboard(page, element) {
  await tabTo(page, element);
  await page.keyboard.press("Enter");
}

/** Signs in with the keyboard alone. */
export async function signInWithKeyboard(page, key, path, ready = page.getByRole("table")) {
  await page.goto(origin + path);
  await tabTo(page, page.getByLabel("Access key", { exact: true }));
  await page.keyboard.type(key);
  await page.keyboard.press("Enter");
  await ready.waitFor();
}

/** Makes a user with an access key, and returns the key. */
export async function createUserWithKey(context, name, spec = {}) {
  await requestAsAdmin(context, "POST", "users", { metadata: { name }, spec: {} });
  return createAccessKey(context, `${name}-key`, { user: name, ...spec });
}

/** Makes an access key as an admin, and returns it. */
export async function createAccessKey(context, name, spec) {
  const answer = await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name }, spec });
  assert.equal(answer.status(), 201, await answer.text());
  return (await answer.json()).spec.key;
}

/** Finds what axe finds on the page as it is. The policy of the page allows no script from outside, so that the browser adds it. */
export async function assertAccessible(page, about) {
  const session = await page.context().newCDPSession(page);
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
    return result.value;
  };
  if (!(await evaluate("Boolean(globalThis.axe)"))) await evaluate(axe + ";0");
  // While a colour changes, its contrast is that of neither.
  await evaluate(`Promise.all(document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime < Infinity).map((one) => one.finished.catch(() => {}))).then(() => 0)`);
  const found = await evaluate(`axe.run({resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    .then((result) => JSON.stringify(result.violations.map((one) => [one.id, one.nodes.map((node) => node.html)])))`);
  assert.equal(found, "[]", about);
}

const folders = [];
process.on("exit", () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** Returns a new folder, which is removed when the stories have ended. */
export function newFolder() {
  const folder = mkdtempSync(`${tmpdir()}/console-`);
  folders.push(folder);
  return folder;
}

/** Runs the unmodified kubectl with a kubeconfig, and returns what it says. */
export function kubectl(file, ...words) {
  const folder = newFolder();
  return new Promise((done) => {
    execFile(process.env.KUBECTL, ["--kubeconfig", file, `--cache-dir=${folder}`, ...words], { env: { HOME: folder } }, (failure, out, err) => {
      done({ code: failure?.code ?? 0, text: `${out}${err}` });
    });
  });
}

/** Waits for the download that an action causes, and returns the path of the file. */
export async function saveDownload(page, action) {
  const saved = page.waitForEvent("download");
  await action();
  const file = await saved;
  const path = `${newFolder()}/${file.suggestedFilename()}`;
  await file.saveAs(path);
  return path;
}

/** Answers a request of the API as an admin. */
export async function requestAsAdmin(context, method, path, data, type = "application/json") {
  return context.request.fetch(`${api}/${path}`, {
    method, headers: { Authorization: `Bearer ${admin}`, Cookie: "", "Content-Type": type }, data: data && JSON.stringify(data),
  });
}

/** Waits for answers of reviews of access. */
export function accessReviews(page, count) {
  return new Promise((done) => {
    page.on("response", (response) => { if (response.url().includes("selfsubjectaccessreviews") && --count === 0) response.finished().then(done); });
  });
}

/** The text that an editor shows. It has few enough lines that all of them are drawn. */
export const editorText = async (editor) => (await editor.locator(".cm-line").allTextContents()).join("\n");

/** How long a slow page may take for what somebody has typed, in milliseconds. */
const patience = 100_000;

/** Fails if the page does not do something in time: a call of a page whose script does not end waits forever. */
async function withinPatience(about, doing) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${about}: the page has not answered after ${patience / 1000} s`)), patience); });
  doing.catch(() => {}); // it may fail after the story has
  try {
    return await Promise.race([doing, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until a text is the expected one. */
export async function waitForText(about, read, expected) {
  const end = performance.now() + patience;
  for (;;) {
    const found = await withinPatience(about, read());
    if (found === expected) return;
    if (performance.now() > end) assert.equal(found, expected, about);
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
}

/** The events of keys, as the browser takes them. */
const letterKey = (text) => ({ type: "keyDown", key: text, text, unmodifiedText: text });
const backspaceKey = { type: "keyDown", key: "Backspace", code: "Backspace", windowsVirtualKeyCode: 8, autoRepeat: true };
const undoKeys = { type: "rawKeyDown", key: "z", code: "KeyZ", windowsVirtualKeyCode: 90, modifiers: 2, autoRepeat: true };
const redoKeys = { type: "rawKeyDown", key: "y", code: "KeyY", windowsVirtualKeyCode: 89, modifiers: 2, autoRepeat: true };

/**
 * Types faster than a slow page draws: 200 letters, then the backspace key held, then those for undo and redo. Keys are sent without
 * waiting for the page, so that several arrive before it has drawn one. What the editor shows, and what the page holds, is exactly what
 * was typed.
 */
export async function typeFast(page, editor, held) {
  const session = debuggers.get(page);
  const first = await editorText(editor);
  const hold = async (about, keys, expected) => {
    await focus(editor);
    await withinPatience(about, Promise.all(keys.map((key) => session.send("Input.dispatchKeyEvent", key))));
    await waitForText(`${about}, shown`, () => editorText(editor), expected);
    await waitForText(`${about}, held`, held, expected);
  };
  await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  await focus(editor);
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("# ");
  const typed = Array.from({ length: 200 }, (_, i) => "abcdefghijklmnopqrstuvwxyz"[i % 26]).join("");
  await hold("200 letters", [...typed].map(letterKey), `# ${typed}`);
  await hold("the backspace key, held for 120 letters", Array(120).fill(backspaceKey), `# ${typed.slice(0, 80)}`);
  await hold("undo, held", Array(100).fill(undoKeys), first);
  await hold("redo, held", Array(100).fill(redoKeys), `# ${typed.slice(0, 80)}`);
  await session.send("Emulation.setCPUThrottlingRate", { rate: 1 });
}

/** The text of an editor of the studio, as a file that is saved has it. */
export const savedText = (page, field) => async () => {
  const file = await saveDownload(page, () => page.getByRole("button", { name: "Save as a file" }).click());
  return JSON.parse(readFileSync(file, "utf8"))[field];
};

/** The looks in which each page is accessible: 320 pixels are what a window of 1280 by 1024 shows at 400 %. */
export const allLooks = {
  light: { colorScheme: "light", forcedColors: "none", width: 1200, height: 800 },
  dark: { colorScheme: "dark", forcedColors: "none", width: 1200, height: 800 },
  "forced colours": { colorScheme: "light", forcedColors: "active", width: 1200, height: 800 },
  "400 %": { colorScheme: "light", forcedColors: "none", width: 320, height: 256 },
};

/** Looks at a page in some of allLooks: axe finds nothing, and nothing is too wide. */
export async function assertAccessibleIn(looks, page, about) {
  for (const look of looks) {
    const { width, height, ...media } = allLooks[look];
    await page.setViewportSize({ width, height });
    await page.emulateMedia(media);
    await assertAccessible(page, `${about}, ${look}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${about}, ${look}: ${wide} pixels too wide`);
    if (!pictureFolder) continue;
    if (height < 700) await page.setViewportSize({ width, height: 700 });
    await page.screenshot({ path: `${pictureFolder}/${about}-${look}.png` });
  }
  await page.setViewportSize({ width: 1200, height: 800 });
}

/** Sets whether the tab is hidden. */
export async function setHidden(page, hidden) {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
}

/** Notes a figure in the file that MEASURE names. */
export function recordFigure(figure) {
  if (process.env.MEASURE) appendFileSync(process.env.MEASURE, `${figure}\n`);
}

/** Whether a request is for a part of the console: a page asks for each once, also for parts that it may need later. */
export const isAsset = (request) => request.url().includes("/console/assets/");

/** Keeps an eye on the requests of a page: those that it has begun, without those for assets, and those that have no end yet. */
export function requestsOf(page) {
  const begun = [], pending = new Set();
  page.on("request", (request) => {
    if (!isAsset(request)) begun.push(`${request.method()} ${request.url()}`);
    pending.add(request);
  });
  for (const over of ["requestfinished", "requestfailed"]) page.on(over, (request) => pending.delete(request));
  const streams = () => [...pending].filter((request) => request.url().includes("watch=true")).length;
  /** Waits until all but streams have ended. */
  const frame = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
  const calm = async () => { while (pending.size > streams()) await frame(); };
  /** Waits until a list is watched: a busy machine has the request late. */
  const watched = async () => { while (streams() === 0) await frame(); };
  return { begun, streams, calm, watched };
}

/** Answers lists of keys with this many, in pages of 500, and watches with no event. Hold stops before a row, or refuses what follows, until go. */
export async function serveManyKeys(page, count) {
  let [limit, code, go] = [Infinity, 0, () => {}];
  let free = Promise.resolve();
  const rows = (from) => Array.from({ length: Math.min(500, count - from) }, (_, i) => {
    const name = `key-${String(from + i).padStart(4, "0")}`;
    const object = { metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" }, spec: { user: "ana", type: "User" }, status: {} };
    return { cells: [name, "user:ana"], object };
  });
  await page.route(/ownedaccesskeys\?(?!.*watch=)/, async (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get("continue") ?? 0);
    if (from >= limit && code > 0) return route.fulfill({ status: code, contentType: "application/json", body: JSON.stringify({ kind: "Status", apiVersion: "v1", code, message: "not now" }) });
    if (from >= limit) await free;
    const left = count - from - 500;
    const metadata = { resourceVersion: "1", ...(left > 0 ? { continue: String(from + 500), remainingItemCount: left } : {}) };
    const columnDefinitions = ["Name", "Owner"].map((name) => ({ name, description: name, priority: 0 }));
    return route.fulfill({ contentType: "application/json", body: JSON.stringify({ kind: "Table", metadata, columnDefinitions, rows: rows(from) }) });
  });
  await page.route(/ownedaccesskeys\?.*watch=/, () => {});
  return {
    hold(row, refusal = 0) {
      [limit, code] = [row, refusal];
      free = new Promise((done) => { go = done; });
    },
    go() {
      limit = Infinity;
      go();
    },
  };
}

/** Two stories with the looks that each of them looks at: most of what axe finds is the same in all looks, so that the others are for check-deep. */
export function inAllLooks(name, story) {
  const [first, ...otherLooks] = Object.keys(allLooks);
  return { stories: { [`${name}: ${first}`]: () => story([first]) }, longStories: { [`${name}: ${otherLooks.join(", ")}`]: () => story(otherLooks) } };
}
