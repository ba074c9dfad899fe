// Stories of the frame of the console: the side bar, the keys of the keyboard, what is said when the platform fails, and the addresses.
import assert from "node:assert/strict";
import { admin, assertAccessible, createAccessKey, createKey, focus, openWindow, origin, pictureFolder, pressWithKeyboard, requestAsAdmin, signIn, tabTo } from "../driver.mjs";

/** Answers requests with a refusal of the API. */
const refuse = (code, message, seconds = 0) => (route) => route.fulfill({
  status: code, contentType: "application/json",
  body: JSON.stringify({ kind: "Status", apiVersion: "v1", code, message, details: seconds > 0 ? { retryAfterSeconds: seconds } : {} }),
});

export const stories = {
  async "the side bar has the pages in groups, at every width"() {
    const { context, page, problems } = await openWindow({ viewport: { width: 1920, height: 1080 }, reducedMotion: "reduce" });
    await signIn(page);
    const bar = page.getByRole("banner");
    const pages = page.getByRole("navigation", { name: "Pages" });
    for (const [group, names] of Object.entries({
      Work: ["Home", "Virtual clusters", "Access keys", "Tokens"], Tools: ["Patch studio", "Found a key?"], People: ["Projects", "People", "Teams", "Trust rules"], Platform: ["Audit", "Configuration"],
    })) assert.deepEqual(await pages.getByRole("group", { name: group }).getByRole("link").allTextContents(), names);
    await bar.getByText(new URL(origin).host, { exact: true }).waitFor();
    for (const width of [1920, 1366, 1230, 1024, 768]) {
      await page.setViewportSize({ width, height: 700 });
      const { width: taken, height } = await bar.boundingBox();
      assert.ok(taken <= 240 && height === 700, `at ${width} the bar takes ${taken} x ${height}`);
      assert.ok(await bar.locator(".product").evaluate((one) => one.offsetWidth > 0 && one.scrollWidth <= one.clientWidth), `at ${width} the name of the product is cut off`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `at ${width} the page is ${wide} too wide`);
    }
    // The table uses the width that there is, and needs no more than a wide screen has.
    for (const [width, least] of [[2560, 1700], [1920, 1600]]) {
      await page.setViewportSize({ width, height: 1080 });
      assert.ok((await page.locator(".table").boundingBox()).width > least, `at ${width}`);
      assert.ok(await page.locator(".table").evaluate((one) => one.scrollWidth <= one.clientWidth), `at ${width} the table scrolls sideways`);
    }
    // From right to left, the bar is on the right, and code is still written from the left.
    await page.evaluate(() => { document.documentElement.dir = "rtl"; });
    assert.equal(Math.round((await bar.boundingBox()).x + (await bar.boundingBox()).width), 1920);
    assert.equal(await page.locator(".kubectl code").evaluate((one) => getComputedStyle(one).direction), "ltr");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
    await page.evaluate(() => { document.documentElement.dir = "ltr"; });
    await page.setViewportSize({ width: 390, height: 800 });
    assert.ok((await bar.boundingBox()).height < 90);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the menu of the person has the groups, the theme and the sign-out, with mouse and keyboard"() {
    const { context, page, problems } = await openWindow({ colorScheme: "light", reducedMotion: "reduce" });
    await signIn(page);
    const button = page.getByRole("button", { name: "admin", exact: true });
    const menu = page.getByRole("group", { name: "admin", exact: true });
    await button.click();
    await menu.getByText("platform:admins").waitFor();
    await menu.getByLabel("Theme").selectOption("Dark");
    assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    await assertAccessible(page, "the menu of the person");
    if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/person.png` });
    await menu.getByLabel("Theme").selectOption("System");
    await page.keyboard.press("Escape");
    await menu.waitFor({ state: "hidden" });
    await pressWithKeyboard(page, button);
    await pressWithKeyboard(page, menu.getByRole("button", { name: "Keyboard shortcuts" }));
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await pressWithKeyboard(page, button);
    await pressWithKeyboard(page, menu.getByRole("button", { name: "Sign out" }));
    await page.getByLabel("Access key", { exact: true }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the letter f goes to the filter and a question mark to the keys, and neither while somebody types"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    await page.keyboard.press("f");
    const filter = page.getByRole("searchbox");
    assert.ok(await filter.evaluate((it) => it === document.activeElement));
    await page.keyboard.type("a/?f");
    assert.equal(await filter.inputValue(), "a/?f");
    assert.equal(await page.getByRole("dialog").count(), 0);
    await page.keyboard.press("Control+a");
    await page.keyboard.press("Delete");
    await tabTo(page, page.getByRole("link", { name: "Open admin" }));
    await page.keyboard.press("?");
    const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await keys.getByText("Go to the filter of the page").waitFor();
    await keys.getByText("Search everything").waitFor();
    await assertAccessible(page, "the keys of the keyboard");
    await page.keyboard.press("/"); // the page below a dialog takes nothing
    await page.keyboard.press("Control+k");
    assert.equal(await page.getByRole("dialog").count(), 1);
    await page.keyboard.press("Escape");
    await keys.waitFor({ state: "detached" });
    await page.goto(`${origin}/console/studio`);
    const editor = page.getByRole("textbox", { name: "Configuration" });
    await focus(editor);
    await page.keyboard.type("/?f");
    assert.equal(await page.getByRole("dialog").count(), 0);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a platform that fails at the start asks nobody to sign in"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    const alert = page.getByRole("alert");
    const key = page.getByLabel("Access key", { exact: true });
    const again = page.getByRole("button", { name: "Try again" });
    for (const [path, code, title] of [["**/selves", 503, "The platform is not available"], ["**/selves", 429, "Too many requests"], ["**/selves", 500, "The platform failed"], ["**/scopepreviews", 503, "The platform is not available"]]) {
      await page.route(path, refuse(code, "not now", 9));
      await page.reload();
      await alert.getByText(title).waitFor();
      await alert.getByText("not now").waitFor();
      await page.getByText(/Try again in [1-8] s\./).waitFor(); // it counts down
      assert.equal(await key.count(), 0, `${path} ${code}: asked to sign in`);
      await page.unroute(path);
      await again.click();
      await page.getByRole("table").waitFor();
    }
    // No network, and the keyboard.
    await page.route("**/selves", (route) => route.abort());
    await page.reload();
    await alert.getByText("No connection").waitFor();
    await assertAccessible(page, "no connection at the start");
    await page.unroute("**/selves");
    await pressWithKeyboard(page, again);
    await page.getByRole("table").waitFor();
    // When the API has said when, nobody has to press anything.
    await page.route("**/selves", refuse(503, "not now", 1), { times: 1 });
    await page.reload();
    await page.getByRole("table").waitFor();
    // While it is slow, gray rows stand for what comes.
    let answer;
    const slow = new Promise((done) => { answer = done; });
    await page.route(/ownedaccesskeys\?/, async (route) => { await slow; await route.fallback(); }, { times: 1 });
    await page.reload();
    await page.locator(".skeleton .bone").first().waitFor();
    assert.equal(await page.getByRole("status").filter({ hasText: "Loading …" }).count(), 1);
    answer();
    await page.getByRole("table").waitFor();
    // Only 401 is signed out.
    await page.route("**/selves", refuse(401, "unknown"));
    await page.reload();
    await key.waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a list is live only while it is, and says when it is tried again"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    const live = page.getByText("Live", { exact: true });
    const again = page.getByRole("button", { name: "Try again" });
    await live.waitFor();
    for (const code of [403, 429, 500, 503]) {
      await page.route(/ownedaccesskeys\?/, refuse(code, "refused by the story", 30));
      await page.reload();
      await page.getByRole("alert").getByText("refused by the story").waitFor();
      await page.getByText(/^Not connected, trying again in (30|2\d) s$/).waitFor();
      assert.equal(await live.count(), 0, `${code}: live`);
      await page.unroute(/ownedaccesskeys\?/);
      if (code === 500) await pressWithKeyboard(page, again);
      else await again.click();
      await live.waitFor();
      assert.equal(await page.getByRole("alert").count(), 0);
    }
    // A watch that is refused after the list was read.
    await page.route(/watch=true/, refuse(503, "no watch", 30));
    await page.reload();
    await page.getByRole("alert").getByText("no watch").waitFor();
    await page.getByRole("link", { name: "Open admin" }).waitFor();
    assert.equal(await live.count(), 0);
    await page.unroute(/watch=true/);
    await again.click();
    await live.waitFor();
    // A browser that is offline is not live, at once, and reads again when it is online.
    await context.setOffline(true);
    await page.getByText(/^Last heard /).waitFor();
    assert.equal(await live.count(), 0, "offline: live");
    await context.setOffline(false);
    await live.waitFor();
    assert.equal(await page.getByText(/^Last heard /).count(), 0);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a deep link into a list that failed ends"() {
    const { context, page, problems } = await openWindow();
    await createAccessKey(context, "linked", {});
    await signIn(page);
    const dialog = page.getByRole("dialog");
    // The list is refused, and the object is not.
    await page.route(/ownedaccesskeys\?/, refuse(403, "no list"));
    await page.goto(`${origin}/console/keys?name=linked`);
    await dialog.getByRole("button", { name: "Disable" }).waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    // Both are.
    for (const [path, resource] of [["keys", "ownedaccesskeys"], ["clusters", "virtualclusterinstances"], ["tokens", "directclusterendpointtokens"], ["projects", "projects"], ["people", "users"], ["teams", "teams"], ["trustrules", "trustrules"]]) {
      await page.route(new RegExp(`/v1/${resource}(\\?|/)|/${resource}/x`), refuse(503, "away", 30));
      await page.goto(`${origin}/console/${path}?name=${path === "clusters" ? "p-shop%2Fx" : "x"}`);
      await dialog.getByRole("alert").getByText("away").waitFor();
      await dialog.getByRole("button", { name: "Close" }).click();
      await dialog.waitFor({ state: "detached" });
      await page.unrouteAll();
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a script that is gone says so, and not that the platform cannot be reached"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    await page.route("**/assets/tokens-*.js", (route) => route.fulfill({ status: 404, body: "{}" }));
    await page.goto(`${origin}/console/tokens`);
    const alert = page.getByRole("alert");
    await alert.getByText("The console has changed").waitFor();
    assert.equal(await alert.getByText("cannot be reached").count(), 0);
    await assertAccessible(page, "a script that is gone");
    await page.unroute("**/assets/tokens-*.js");
    await pressWithKeyboard(page, alert.getByRole("button", { name: "Load the page again" }));
    await page.getByRole("button", { name: "New token" }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "an address without a page says so, also deep below the console"() {
    const { context, page, problems } = await openWindow();
    const heading = page.getByRole("heading", { name: "There is no such page" });
    await signIn(page, admin, "/console/nosuch", heading);
    for (const path of ["/console/keys/x/y", "/kubernetes/management/console/nosuch", "/console/keys/"]) {
      assert.equal((await page.goto(origin + path)).status(), 404);
      await heading.waitFor();
      await assertAccessible(page, `no page: ${path}`);
    }
    await pressWithKeyboard(page, page.getByRole("main").getByRole("link", { name: "Home" }));
    await page.getByRole("heading", { name: "Hello, admin" }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "what is opened has an address, and Back closes it"() {
    const { context, page, problems } = await openWindow();
    await createAccessKey(context, "addressed", { displayName: "Has an address" });
    await signIn(page, admin, "/console/keys?filter=addr");
    const dialog = page.getByRole("dialog");
    const search = () => new URL(page.url()).search;
    const open = page.getByRole("link", { name: "Open addressed" });
    await open.click();
    await dialog.getByRole("button", { name: "Disable" }).waitFor();
    assert.equal(search(), "?filter=addr&name=addressed");
    await page.goBack();
    await dialog.waitFor({ state: "detached" });
    assert.equal(search(), "?filter=addr");
    await page.goForward();
    await dialog.waitFor();
    // One step to the key that made it, and one press of Back.
    await dialog.getByRole("tab", { name: "Lineage" }).click();
    await dialog.getByRole("button", { name: "admin", exact: true }).click();
    await page.getByRole("heading", { level: 2, name: "admin" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { level: 2, name: "addressed" }).waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.waitForURL(/\?filter=addr$/);
    // With the keyboard, and with the end of a form.
    await pressWithKeyboard(page, open);
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.waitForURL(/\?filter=addr$/);
    await page.getByRole("button", { name: "New key" }).click();
    assert.equal(search(), "?filter=addr&new=yes");
    await page.goBack();
    await dialog.waitFor({ state: "detached" });
    for (const [path, name] of [["keys", "New key"], ["clusters", "Register a virtual cluster"], ["tokens", "New token"], ["projects", "New project"], ["people", "New user"], ["teams", "New team"], ["trustrules", "New trust rule"]]) {
      await page.goto(`${origin}/console/${path}?new=yes`);
      await page.getByRole("dialog", { name }).waitFor();
      // The first field has the focus.
      await page.waitForFunction(() => document.activeElement.matches("dialog form :is(input, select)"));
      assert.ok(await dialog.evaluate((it) => [...it.querySelectorAll("form :is(input, select)")].find((field) => field.type !== "radio" || field.checked) === document.activeElement), name);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      assert.equal(search(), "");
    }
    // A name opens in another tab.
    await page.goto(`${origin}/console/keys?filter=addr`);
    const [tab] = await Promise.all([context.waitForEvent("page"), open.click({ modifiers: ["Control"] })]);
    await tab.getByRole("dialog").getByRole("button", { name: "Disable" }).waitFor();
    assert.equal(await dialog.count(), 0);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the whole row opens, and a click beside closes what nobody has typed into"() {
    const { context, page, problems } = await openWindow();
    await createAccessKey(context, "whole-row", { displayName: "Selected text" });
    await signIn(page, admin, "/console/keys?filter=whole-row");
    const dialog = page.getByRole("dialog");
    const row = page.locator("tbody tr");
    const beside = () => page.mouse.click(400, 780);
    await row.locator("td", { has: page.locator("time") }).last().click();
    await dialog.getByRole("button", { name: "Disable" }).waitFor();
    await beside();
    await dialog.waitFor({ state: "detached" });
    // Selecting a row or a text opens nothing.
    await row.getByRole("checkbox").check();
    await row.getByText("Selected text").dblclick({ noWaitAfter: true });
    await page.keyboard.press("Escape");
    const box = await row.getByText("Selected text").boundingBox();
    await dialog.waitFor({ state: "detached" });
    await page.evaluate(() => getSelection().empty());
    await page.mouse.move(box.x + 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + 60, box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
    assert.notEqual(await page.evaluate(() => String(getSelection())), "");
    assert.equal(await dialog.count(), 0);
    // A form with something in it stays.
    await page.evaluate(() => getSelection().empty());
    await page.getByRole("button", { name: "New key" }).click();
    await page.mouse.click(5, 5);
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("typed");
    // It asks first, also at Escape and at Back, and goes on where the person was.
    const question = dialog.getByRole("group", { name: "Discard what you typed?" });
    const typed = page.getByLabel("Name", { exact: true });
    await page.mouse.click(5, 5);
    await question.waitFor();
    await assertAccessible(page, "a form that asks");
    await question.getByRole("button", { name: "Keep editing" }).click();
    assert.equal(await typed.inputValue(), "typed");
    assert.ok(await typed.evaluate((it) => it === document.activeElement));
    for (let times = 2; times > 0; times--) await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    assert.ok(await typed.evaluate((it) => it === document.activeElement));
    await page.goBack();
    await question.waitFor();
    await page.waitForFunction(() => history.state?.unsaved);
    assert.equal(await page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true }))), true);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    await page.waitForURL(/\?filter=whole-row$/);
    await page.waitForFunction(() => !history.state?.depth);
    // A secret stays until it is saved.
    await createKey(page, "whole-row-b");
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "I have saved it" }).waitFor();
    await page.mouse.click(5, 5);
    await page.getByRole("button", { name: "I have saved it" }).click();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "cells say what they mean: states, owners, scopes and ends"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "cell-web" }, spec: {} });
    for (const [name, spec] of Object.entries({
      "cell-a": { displayName: "Two lines", ttl: 2 * 86_400, scope: { projects: [{ project: "shop" }], roles: [{ role: "platformCLI" }] } }, "cell-b": { disabled: true, team: "cell-web" }, "cell-c": {},
      "cell-short": { ttl: 43_200 },
    })) await createAccessKey(context, name, spec);
    for (const [name, clusterRoles] of [["cell-admin", [{ name: "platform-admin" }]], ["cell-user", []]]) await requestAsAdmin(context, "POST", "users", { metadata: { name }, spec: { clusterRoles } });
    await signIn(page, admin, "/console/keys?filter=cell-");
    const row = (name) => page.getByRole("row").filter({ has: page.getByRole("link", { name: `Open ${name}` }) });
    const cell = (name, text) => row(name).getByRole("cell", { name: text, exact: true }).waitFor();
    await row("cell-a").getByRole("rowheader").getByText("Two lines", { exact: true }).waitFor();
    assert.equal(await page.getByRole("columnheader", { name: "Display Name" }).count(), 0);
    await page.getByRole("columnheader", { name: "State" }).waitFor();
    await page.getByRole("columnheader", { name: "Created" }).waitFor();
    // Two days are two days at once.
    await cell("cell-a", "in 2 days");
    await cell("cell-a", "Enabled");
    await cell("cell-b", "Disabled");
    await cell("cell-b", "team cell-web");
    await cell("cell-c", "Everything");
    assert.equal(await row("cell-a").locator(".chip.warning").count(), 1);
    // What is made for some hours ends soon by its nature.
    await cell("cell-short", "in 12 hr.");
    assert.equal(await row("cell-short").locator(".chip.warning").count(), 0);
    const name = page.getByRole("link", { name: "Open cell-c" });
    const look = () => name.evaluate((one) => [Number(getComputedStyle(one).fontWeight) < 600, getComputedStyle(one).textDecorationLine]);
    await page.mouse.move(0, 0);
    assert.deepEqual(await look(), [true, "none"]);
    await name.hover();
    assert.deepEqual(await look(), [true, "underline"]);
    assert.deepEqual(await row("cell-a").locator("code").allTextContents(), ["role:platformCLI +1"]);
    await assertAccessible(page, "cells");
    // The filter finds what the cells show, and their values as well.
    for (const [words, names] of Object.entries({
      enabled: ["cell-a", "cell-c", "cell-short"], Disabled: ["cell-b"], everything: ["cell-b", "cell-c", "cell-short"], "team:cell-web": ["cell-b"], "role:platformCLI": ["cell-a"], "in 2 days": ["cell-a"], "two línes": ["cell-a"],
    })) {
      await page.getByRole("searchbox").fill(`cell- ${words}`);
      await page.getByText(new RegExp(`^${names.length} of \\d+ keys$`)).waitFor();
      for (const name of names) await row(name).waitFor();
    }
    await page.goto(`${origin}/console/people?filter=cell-admin+yes`);
    await page.getByText(/^1 of \d+ entries$/).waitFor();
    await page.getByRole("link", { name: "Open cell-admin" }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a sheet names owners, teams and members in words, and leads to each of them"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    const post = async (path, name, spec) => assert.equal((await requestAsAdmin(context, "POST", path, { metadata: { name }, spec })).status(), 201, name);
    await post("users", "sheet-ana", {});
    await post("teams", "sheet-web", { users: ["sheet-ana"] });
    await post("teams", "sheet-empty", {});
    await post("projects", "sheet", { owner: { team: "sheet-web" }, members: [{ kind: "User", name: "sheet-ana", role: "use" }] });
    await post("namespaces/p-sheet/virtualclusterinstances", "sheet", { owner: { user: "sheet-ana" }, access: [{ verbs: ["use", "delete"], teams: ["sheet-web"] }] });
    await post("directclusterendpointtokens", "sheet", {});
    await signIn(page);
    const dialog = page.getByRole("dialog");
    for (const [path, links, texts] of [
      ["people?name=sheet-ana", ["team sheet-web"], ["None that works."]],
      ["teams?name=sheet-web", ["user sheet-ana"], []],
      ["teams?name=sheet-empty", [], ["No users are listed."]],
      ["projects?name=sheet", ["team sheet-web", "user sheet-ana"], []],
      ["clusters?name=p-sheet/sheet", ["user sheet-ana", "team sheet-web"], ["Get kubeconfigs · Delete it", "spec.signer is not set"]],
      ["tokens?name=sheet", ["admin"], []],
    ]) {
      await page.goto(`${origin}/console/${path}`);
      for (const name of links) await dialog.getByRole("link", { name, exact: true }).waitFor();
      for (const text of texts) await dialog.getByText(text).waitFor();
      const raw = (await dialog.innerText()).match(/(user|team|subject):\S+|<all>|<none>|\b\w+=(True|False)\b/);
      assert.equal(raw?.[0], undefined, path);
      assert.equal(await dialog.locator("button.primary", { hasText: /^Close$/ }).count(), 0, `${path}: the button that only closes is the loudest`);
    }
    await page.goto(`${origin}/console/clusters?name=p-sheet/sheet`);
    await pressWithKeyboard(page, dialog.getByRole("link", { name: "team sheet-web" }));
    await page.getByRole("dialog", { name: "sheet-web" }).waitFor();
    for (const path of ["directclusterendpointtokens/sheet", "namespaces/p-sheet/virtualclusterinstances/sheet", "projects/sheet", "teams/sheet-empty", "teams/sheet-web", "users/sheet-ana"]) await requestAsAdmin(context, "DELETE", path);
    assert.deepEqual(problems, []);
    await context.close();
  },
};
