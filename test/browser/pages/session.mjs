// Stories of the session: how it begins and ends, and who cannot use it.
import assert from "node:assert/strict";
import http from "node:http";
import { assertAccessible, admin, api, requestAsAdmin, focus, createKey, createAccessKey, openWindow, openOrigin, origin, allowedOrigins, pictureFolder, pressWithKeyboard, signIn, signOut } from "../driver.mjs";

export const stories = {
  async "a session that is about to end says so, and a sign-in in another tab keeps what was typed"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await page.clock.install();
    const { spec: { key } } = await (await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name: "short" }, spec: { ttl: 240 } })).json();
    await signIn(page, key);
    const line = page.getByText(/^Your session ends at \d+:\d\d .M \(in [34] min\.\)/);
    await line.waitFor();
    for (const [colorScheme, width] of [["light", 1200], ["dark", 320]]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await assertAccessible(page, `a session that ends at ${width}, ${colorScheme}`);
      if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/session-ends-${width}-${colorScheme}.png` });
    }
    await page.setViewportSize({ width: 1200, height: 800 });
    // A dialog covers the page: the line is in the dialog as well.
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("typed-late");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Sign in again" }).click();
    await page.getByLabel("Access key", { exact: true }).waitFor(); // before it is open, the other dialog gets the key
    await page.keyboard.press("Escape");
    await page.clock.fastForward(240_000);
    await dialog.getByText(/^Your session ended at/).waitFor();
    await dialog.getByRole("button", { name: "Sign in again" }).click();
    /** Signs in as an admin in the tab that the dialog opens. */
    const inNewTab = async () => {
      const opened = context.waitForEvent("page");
      await page.getByRole("link", { name: "Sign in in a new tab" }).click();
      const tab = await opened;
      await tab.getByLabel("Access key", { exact: true }).fill(admin);
      await tab.getByRole("button", { name: "Sign in" }).click();
      await tab.getByRole("heading", { name: "Hello, admin" }).waitFor();
      assert.equal(new URL(tab.url()).search, "");
      await tab.close();
    };
    await inNewTab();
    await page.getByLabel("Access key", { exact: true }).waitFor({ state: "detached" });
    assert.equal(await page.getByText(/^Your session end/).count(), 0);
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "typed-late");
    // The session is over: what is saved waits for the sign-in, and is made once.
    await context.clearCookies();
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByText("Your session has ended.").waitFor();
    await inNewTab();
    await page.getByRole("button", { name: "I have saved it" }).click();
    const { items } = await (await requestAsAdmin(context, "GET", "ownedaccesskeys")).json();
    assert.deepEqual(items.map(({ metadata: { name } }) => name).filter((name) => name.startsWith("typed-late")), ["typed-late"]);
    for (const name of ["short", "typed-late"]) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "another port of the same host cannot use the session"() {
    // The browser sends the cookie there and from there: a port does not separate cookies. The API refuses it.
    allowedOrigins.add(openOrigin);
    const { context, page } = await openWindow();
    await signIn(page);
    await createKey(page, "kept-here");
    const other = await context.newPage();
    // A page without a policy of its own.
    await other.goto(`${openOrigin}/console/assets/LICENSES.txt`);
    const answers = [];
    // What the browser hides from the page, its network knows.
    const network = await context.newCDPSession(other);
    network.on("Network.responseReceivedExtraInfo", ({ statusCode }) => answers.push(statusCode));
    await network.send("Network.enable");
    const said = await other.evaluate(async (keys) => {
      const tried = async (path, init) => fetch(path, { credentials: "include", ...init }).then((r) => r.type, () => "refused");
      return [
        await tried(keys, { mode: "no-cors" }), await tried(keys), await tried(`${keys}/kept-here`, { method: "DELETE" }),
        await tried(keys, { method: "POST", mode: "no-cors", body: '{"metadata":{"name":"forged"}}' }),
        // A picture, a script and a style sheet send cookies without a word of their page.
        ...await Promise.all([["img", "src"], ["script", "src"], ["link", "href"]].map(([name, address]) => new Promise((done) => {
          const element = Object.assign(document.createElement(name), { rel: "stylesheet", [address]: `${keys}?${name}` });
          element.onload = () => done(`${name} loads`);
          element.onerror = () => done("refused");
          document.body.append(element);
        }))),
      ];
    }, `${api}/ownedaccesskeys`);
    // The API permits no other origin to read: the browser hides the answers, or refuses to send the request.
    assert.ok(said.every((one) => one === "opaque" || one === "refused"), said.join());
    // 404 is the icon of the other port, and 405 asks whether a DELETE may be sent.
    const refused = () => answers.filter((status) => status === 401).length;
    // The network tells what the page has seen, and may be later.
    for (let left = 100; refused() < 6 && left > 0; left--) await other.waitForTimeout(100);
    assert.ok(refused() >= 6 && answers.every((status) => [401, 404, 405].includes(status)), answers.join());
    await page.reload();
    await page.getByRole("link", { name: "Open kept-here" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Open forged" }).count(), 0);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/kept-here");
    await context.close();
  },
  async "signing out ends the session, not the key"() {
    const { context, page } = await openWindow();
    const key = await createAccessKey(context, "signed-out", {});
    await signIn(page, key);
    await signOut(page);
    await page.getByLabel("Access key", { exact: true }).waitFor();
    assert.deepEqual(await context.cookies(), []);
    await page.reload();
    await page.getByLabel("Access key", { exact: true }).waitFor();
    // It is used elsewhere as well.
    assert.equal((await context.request.post(`${api}/selves`, { headers: { Authorization: `Bearer ${key}`, Cookie: "" }, data: {} })).status(), 201);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/signed-out");
    await context.close();
  },
  async "a sign-out in one tab leaves nothing on the others, but what was typed"() {
    const { context, page, problems } = await openWindow();
    const key = await createAccessKey(context, "of-tabs", {});
    await signIn(page, key);
    const openTab = async () => {
      const tab = await context.newPage();
      tab.on("pageerror", (failure) => problems.push(failure.message));
      await tab.goto(`${origin}/console/keys`);
      await tab.getByText("Live", { exact: true }).waitFor();
      return tab;
    };
    const [watching, typing] = [await openTab(), await openTab()];
    await typing.getByRole("button", { name: "New key" }).click();
    await typing.getByLabel("Name", { exact: true }).fill("typed-in-a-tab");
    // With the keyboard; the mouse signs out in the stories above.
    await pressWithKeyboard(page, page.locator("button.person"));
    await pressWithKeyboard(page, page.getByRole("button", { name: "Sign out", exact: true }));
    for (const tab of [page, watching]) {
      await tab.getByLabel("Access key", { exact: true }).waitFor();
      assert.equal(await tab.getByText("of-tabs").count() + await tab.getByRole("navigation").count(), 0, "what the session showed is still there");
    }
    await typing.getByText("Your session has ended.").waitFor();
    await typing.getByText("Live", { exact: true }).waitFor({ state: "detached" });
    await typing.getByLabel("Access key", { exact: true }).fill(admin);
    await typing.getByRole("button", { name: "Sign in" }).click();
    await typing.getByText("Live", { exact: true }).waitFor();
    assert.equal(await typing.getByLabel("Name", { exact: true }).inputValue(), "typed-in-a-tab");
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/of-tabs");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a wrong key is refused in plain words"() {
    const { context, page } = await openWindow();
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
    allowedOrigins.add(`http://127.0.0.1:${server.address().port}`);
    const { context, page } = await openWindow();
    await signIn(page);
    await createKey(page, "kept");
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
        // A source of events, which sends no header of its own and follows no preflight.
        await new Promise((done) => {
          const source = new EventSource(`${keys}?watch=true`, { withCredentials: true });
          source.onopen = () => done("open");
          source.onerror = () => done("refused");
        }),
        // A sandboxed frame has an origin of its own.
        await new Promise((done) => {
          addEventListener("message", (event) => done(event.data), { once: true });
          const frame = document.createElement("iframe");
          frame.sandbox = "allow-scripts";
          frame.srcdoc = `<script>fetch(${JSON.stringify(keys)}, { credentials: "include" })
            .then((r) => r.type + r.status, () => "refused").then((said) => parent.postMessage(said, "*"))</script>`;
          document.body.append(frame);
        }),
      ];
    }, [`${origin}/console`, `${api}/ownedaccesskeys`]);
    assert.deepEqual(attempts, ["refused", "refused", "opaque0", "refused", "foreign", "refused", "refused"]);
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
    await page.getByRole("link", { name: "Open kept" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Open forged" }).count(), 0);
    await context.close();
  },
  async "a person signs in at a provider, and comes back to the page that they wanted"() {
    const { context, page, problems } = await openWindow();
    allowedOrigins.add(process.env.ISSUER);
    // The pages of the provider want a font of somebody else, and do without it.
    await context.route("https://fonts.googleapis.com/**", (route) => route.abort());
    const oidc = {
      issuerUrl: process.env.ISSUER, caFile: process.env.ISSUER_CA, clientId: "platform", clientSecret: "hush",
      redirectURI: `${origin}/auth/oidc/callback`, groupsClaim: "groups", scopes: ["profile", "email", "groups"],
    };
    const before = await (await requestAsAdmin(context, "GET", "config/config")).json();
    const set = await requestAsAdmin(context, "PATCH", "config/config", { status: { auth: { oidc } } }, "application/merge-patch+json");
    assert.equal(set.status(), 200, await set.text());
    await page.goto(`${origin}/console/teams`);
    const choose = page.getByRole("button", { name: "Sign in with oidc" });
    await choose.waitFor();
    await assertAccessible(page, "the connectors");
    // A sign-in that the person does not allow makes no session.
    const atProvider = async () => {
      await page.getByPlaceholder("Enter any login").fill("1001");
      await page.getByPlaceholder("and password").fill("any");
      await page.getByRole("button", { name: "Sign-in" }).click();
      await page.getByRole("button", { name: "Continue" }).click();
    };
    await choose.click();
    await atProvider();
    await page.getByRole("heading", { name: "Sign in to the console?" }).waitFor();
    await assertAccessible(page, "the question");
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByRole("alert").getByText("The sign-in was denied.").waitFor();
    assert.equal(new URL(page.url()).search, "");
    // With the keyboard alone. The provider still knows the person.
    await page.goto(`${origin}/console/teams`);
    await focus(choose);
    await page.keyboard.press("Enter");
    await focus(page.getByRole("button", { name: "Allow" }));
    await page.keyboard.press("Enter");
    await page.getByText("ana").first().waitFor();
    await page.waitForURL(`${origin}/console/teams`);
    const kept = await page.evaluate(() => [
      document.documentElement.outerHTML, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie, location.href,
    ].join("\n"));
    assert.ok(!/pak_|verifier|code=/.test(kept), "the page has kept something of the sign-in");
    const keys = async () => (await (await requestAsAdmin(context, "GET", "ownedaccesskeys")).json()).items.filter(({ spec }) => spec.type === "Login" && spec.user === "ana");
    assert.deepEqual((await keys()).map(({ spec }) => spec.description), ["Sign-in of the console"]);
    // The answer to a sign-in that this tab has not begun counts for nothing.
    await signOut(page);
    await choose.waitFor();
    assert.deepEqual(await keys(), []);
    await page.goto(`${origin}/console?code=x&state=y&iss=${encodeURIComponent(origin)}`);
    await page.getByRole("alert").getByText("does not belong to a sign-in").waitFor();
    assert.equal(new URL(page.url()).search, "");
    await requestAsAdmin(context, "PATCH", "config/config", { status: { auth: { oidc: null } } }, "application/merge-patch+json");
    for (const path of ["users/ana", "teams/dev", "teams/ops"]) await requestAsAdmin(context, "DELETE", path);
    assert.equal((await (await requestAsAdmin(context, "GET", "config/config")).json()).status.auth?.oidc, before.status.auth?.oidc);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a request that finds the session over is sent again after the sign-in, and makes one token"() {
    const { context, page, problems } = await openWindow();
    const key = await createAccessKey(context, "ended", { ttl: 86_400 });
    await page.route(/watch=true/, () => {}); // the page does not learn of the end by itself
    await signIn(page, key, "/console/tokens");
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Everything that I may do").check();
    await page.getByLabel("10 minutes").check();
    await requestAsAdmin(context, "PATCH", "ownedaccesskeys/ended", { spec: { disabled: true } }, "application/merge-patch+json");
    const sent = [];
    page.on("response", (response) => {
      const request = response.request();
      if (request.method() === "POST" && request.url().includes("/directclusterendpointtokens?")) sent.push([response.status(), request.headers()["idempotency-key"]]);
    });
    await page.getByRole("button", { name: "Issue token" }).click();
    await page.getByText("Your session has ended.").waitFor();
    await page.getByLabel("Access key", { exact: true }).fill(admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    // Nobody presses anything again.
    await page.getByRole("button", { name: "I have saved it" }).waitFor();
    const names = new Set(sent.map(([, name]) => name));
    assert.deepEqual([sent.map(([code]) => code), names.size], [[401, 201], 1]);
    await page.getByRole("button", { name: "I have saved it" }).click();
    const { items } = await (await requestAsAdmin(context, "GET", "directclusterendpointtokens")).json();
    for (const { metadata: { name } } of items) await requestAsAdmin(context, "DELETE", `directclusterendpointtokens/${name}`);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/ended");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a key that is disabled in another window ends the session of a tab that only watches"() {
    const { context, page, problems } = await openWindow();
    const key = await createAccessKey(context, "watched", { ttl: 86_400 });
    await signIn(page, key);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("What is it for?").fill("typed before");
    await requestAsAdmin(context, "PATCH", "ownedaccesskeys/watched", { spec: { disabled: true } }, "application/merge-patch+json");
    await page.getByText("Your session has ended.").waitFor({ timeout: 15_000 });
    await page.getByLabel("Access key", { exact: true }).fill(admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("Access key", { exact: true }).waitFor({ state: "detached" });
    assert.equal(await page.getByLabel("What is it for?").inputValue(), "typed before");
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/watched");
    assert.deepEqual(problems, []);
    await context.close();
  },
};
