// The stories of the console in a real browser. browser_test.go starts it with the address of a runner, the file of an admin key
// and the path of the browser. It prints one JSON line for each story, and one at the end.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [origin, keyFile, executablePath, pictures] = process.argv.slice(2);
const admin = readFileSync(keyFile, "utf8").trim();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const api = `${origin}/kubernetes/management/apis/management.platform.sh/v1`;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const foreign = new Set();
/** Origins of pages that a story opens beside the console. */
const others = new Set();
let violations = 0;

/** A window of somebody, whose requests and violations of the policy are counted. */
async function open(options = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  const problems = [];
  context.on("request", (request) => {
    const { protocol, origin: from } = new URL(request.url());
    if (protocol.startsWith("http") && from !== origin && !others.has(from)) foreign.add(from);
  });
  page.on("pageerror", (failure) => problems.push(failure.message));
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted/.test(message.text())) violations++;
  });
  return { context, page, problems };
}

async function signIn(page, key = admin, path = "/console") {
  await page.goto(origin + path);
  await page.getByLabel("Access key", { exact: true }).fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("table").waitFor();
}

/** Makes a key, and returns it after "I have kept it". */
async function make(page, name) {
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("button", { name: "Show" }).click();
  const key = (await page.locator(".secret code").textContent()).trim();
  await page.getByRole("button", { name: "I have kept it" }).click();
  await page.getByRole("button", { name: `Open ${name}`, exact: true }).waitFor();
  return key;
}

/** Finds what axe finds on the page as it is. The policy of the page allows no script from outside, so that the browser adds it. */
async function accessible(page, about) {
  const session = await page.context().newCDPSession(page);
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
    return result.value;
  };
  await evaluate(axe + ";0");
  const found = await evaluate(`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    .then((result) => JSON.stringify(result.violations.map((one) => [one.id, one.nodes.map((node) => node.html)])))`);
  assert.equal(found, "[]", about);
}

const stories = {
  async "a key is made, shown once, disabled and deleted"() {
    const { context, page, problems } = await open();
    await signIn(page);
    const key = await make(page, "story");
    // Nothing keeps the key once it is gone from the page.
    const kept = await page.evaluate(() => [
      document.documentElement.outerHTML, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie, location.href, document.title,
    ].join("\n"));
    assert.ok(!kept.includes(key) && !kept.includes(admin), "the page has kept a key");
    assert.equal(await page.evaluate(() => document.cookie), "");
    const asked = () => context.request.post(`${api}/selves`, { headers: { Authorization: `Bearer ${key}`, Cookie: "" }, data: {} });
    assert.equal((await asked()).status(), 201);
    await page.getByRole("button", { name: "Open story" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).waitFor();
    assert.equal((await asked()).status(), 401);
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    const remove = page.getByRole("dialog").getByRole("button", { name: "Delete" });
    assert.ok(await remove.isDisabled());
    await page.getByLabel("Type story to delete it").fill("story");
    await remove.click();
    await page.getByRole("button", { name: "Open story" }).waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the same with the keyboard alone, below the base path"() {
    const { context, page, problems } = await open();
    await page.goto(`${origin}/kubernetes/management/console/keys`);
    await page.getByLabel("Access key", { exact: true }).waitFor();
    await page.keyboard.type(admin);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "New key" }).focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("What is it for?").waitFor();
    await page.keyboard.type("By keyboard");
    await page.keyboard.press("Tab");
    await page.keyboard.type("typed");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "I have kept it" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Open typed" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a key that others make appears by itself, and the end of the session keeps what was typed"() {
    const { context, page } = await open();
    await signIn(page);
    const mine = await make(page, "mine");
    const other = await open();
    await signIn(other.page, mine);
    await other.page.getByRole("button", { name: "New key" }).click();
    await other.page.getByLabel("Name", { exact: true }).fill("typed-before");
    await page.getByRole("button", { name: "Open mine" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).waitFor();
    await other.page.getByRole("button", { name: "Create key" }).click();
    await other.page.getByLabel("Access key", { exact: true }).fill(admin);
    await other.page.getByRole("button", { name: "Sign in" }).click();
    await other.page.getByRole("button", { name: "I have kept it" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    // The watch of the first window shows it.
    await page.getByRole("button", { name: "Open typed-before" }).waitFor();
    await other.context.close();
    await context.close();
  },
  async "a scope in YAML, and a field that is wrong"() {
    const { context, page } = await open();
    await signIn(page);
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("scoped");
    await page.getByLabel("A scope in YAML").check();
    await page.getByLabel("Scope", { exact: true }).fill("roles:\n- role: absent");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("alert").getByText("spec.scope.roles[0].role").waitFor();
    await page.getByLabel("Scope", { exact: true }).fill("projects:\n- project: shop");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "I have kept it" }).click();
    await page.getByRole("button", { name: "Open scoped" }).click();
    await page.getByRole("dialog").getByText('"project": "shop"').waitFor();
    await context.close();
  },
  async "signing out ends the session, not the key"() {
    const { context, page } = await open();
    await signIn(page);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Access key", { exact: true }).waitFor();
    assert.deepEqual(await context.cookies(), []);
    await page.reload();
    await page.getByLabel("Access key", { exact: true }).waitFor();
    await context.close();
  },
  async "a wrong key is refused in plain words"() {
    const { context, page } = await open();
    await page.goto(`${origin}/console`);
    await page.getByLabel("Access key", { exact: true }).fill("x".repeat(40));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("does not accept this access key").waitFor();
    await context.close();
  },
  async "other origins cannot use the session"() {
    // Another port of this machine is another origin of the same site, and a name is another site.
    const server = http.createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<!doctype html><title>other</title>"));
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    server.unref();
    others.add(`http://127.0.0.1:${server.address().port}`);
    const { context, page } = await open();
    await signIn(page);
    await make(page, "kept");
    const cookie = (await context.cookies()).find((one) => one.name === "__Host-platform");
    assert.ok(cookie.httpOnly && cookie.secure && cookie.sameSite === "Strict" && cookie.path === "/");
    const evil = await context.newPage();
    await evil.goto(`http://127.0.0.1:${server.address().port}/`);
    const attempts = await evil.evaluate(async ([console, keys]) => {
      const tried = async (path, init) => fetch(path, { credentials: "include", ...init }).then((r) => r.type + r.status, () => "refused");
      const frame = document.createElement("iframe");
      frame.src = console;
      document.body.append(frame);
      await new Promise((done) => (frame.onload = done));
      let framed;
      try { framed = frame.contentDocument === null ? "foreign" : "blank"; } catch { framed = "foreign"; }
      return [
        await tried(keys), await tried(`${keys}/kept`, { method: "DELETE" }),
        await tried(keys, { method: "POST", mode: "no-cors", body: '{"metadata":{"name":"forged"}}' }),
        await tried(keys, { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"metadata":{"name":"forged"}}' }), framed,
      ];
    }, [`${origin}/console`, `${api}/ownedaccesskeys`]);
    assert.deepEqual(attempts, ["refused", "refused", "opaque0", "refused", "foreign"]);
    // A form in the same window: the answer is a page of the API that refuses.
    const posted = evil.waitForResponse((response) => response.request().method() === "POST" && response.url().startsWith(api));
    await evil.evaluate((keys) => {
      const form = document.createElement("form");
      form.method = "post";
      form.action = keys;
      form.enctype = "text/plain";
      const input = document.createElement("input");
      input.name = '{"metadata":{"name":"forged"},"x":"';
      input.value = '"}';
      form.append(input);
      document.body.append(form);
      form.submit();
    }, `${api}/ownedaccesskeys`);
    assert.equal((await posted).status(), 401);
    // The address bar sends no word of the same origin: a session shows nothing outside of the console.
    const direct = await (await context.newPage()).goto(`${api}/ownedaccesskeys`);
    assert.equal(direct.status(), 401);
    await page.reload();
    await page.getByRole("button", { name: "Open kept" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Open forged" }).count(), 0);
    await context.close();
  },
  async "nothing is requested while the tab is hidden"() {
    const { context, page } = await open();
    await signIn(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.clock.install();
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.getByText("Paused", { exact: true }).waitFor();
    await page.clock.runFor(60_000);
    assert.deepEqual(asked, []);
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: false, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.getByText("Live", { exact: true }).waitFor();
    assert.ok(asked.length > 0);
    await context.close();
  },
  async "every page is accessible: light, dark, forced colours, 320 pixels"() {
    for (const [name, options] of Object.entries({
      light: { colorScheme: "light" }, dark: { colorScheme: "dark" }, forced: { forcedColors: "active" }, small: { viewport: { width: 320, height: 700 } },
    })) {
      const { context, page } = await open({ reducedMotion: "reduce", ...options });
      const look = async (about) => {
        await accessible(page, `${about}, ${name}`);
        if (pictures) await page.screenshot({ path: `${pictures}/${about}-${name}.png` });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wide <= 0, `${about}, ${name}: ${wide} pixels too wide`);
      };
      await page.goto(`${origin}/console`);
      await page.getByLabel("Access key", { exact: true }).waitFor();
      await look("sign-in");
      await signIn(page);
      await look("keys");
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByLabel("A scope in YAML").check();
      await look("new-key");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Open admin" }).click();
      await page.getByRole("dialog").getByText("Everything that its owner may do").waitFor();
      await look("key");
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await look("delete");
      await context.close();
    }
  },
  async "without JavaScript, the page has the commands"() {
    const { context, page } = await open({ javaScriptEnabled: false });
    await page.goto(`${origin}/console`);
    await page.locator("noscript pre").waitFor();
    await context.close();
  },
};

for (const [name, story] of Object.entries(stories)) {
  const line = { story: name };
  try {
    await story();
  } catch (failure) {
    line.failure = failure.stack;
  }
  console.log(JSON.stringify(line));
}
await browser.close();
console.log(JSON.stringify({ stories: Object.keys(stories).length, violations, foreign: [...foreign] }));
process.exit(0);
