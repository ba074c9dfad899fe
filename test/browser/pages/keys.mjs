// Stories of access keys: how they are made, shown, changed and deleted, and how their list follows the API.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { admin, api, assertAccessible, pictureFolder, requestAsAdmin, saveDownload, createKey, focus, createAccessKey, openWindow, origin, pressWithKeyboard, serveManyKeys, signIn, tabTo, signInWithKeyboard } from "../driver.mjs";

export const stories = {
  async "a key is made, shown once, disabled and deleted"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    const key = await createKey(page, "story");
    // Nothing keeps the key once it is gone from the page.
    const kept = await page.evaluate(() => [
      document.documentElement.outerHTML, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie, location.href, document.title,
    ].join("\n"));
    assert.ok(!kept.includes(key) && !kept.includes(admin), "the page has kept a key");
    assert.equal(await page.evaluate(() => document.cookie), "");
    const asked = () => context.request.post(`${api}/selves`, { headers: { Authorization: `Bearer ${key}`, Cookie: "" }, data: {} });
    assert.equal((await asked()).status(), 201);
    await page.getByRole("link", { name: "Open story" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).waitFor();
    assert.equal((await asked()).status(), 401);
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    const remove = page.getByRole("dialog").getByRole("button", { name: "Delete" });
    assert.ok(await remove.isDisabled());
    await page.getByLabel("Type story to delete it").fill("story");
    await remove.click();
    await page.getByRole("link", { name: "Open story" }).waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a new column of a Table appears by itself"() {
    const { context, page, problems } = await openWindow();
    await page.route(/ownedaccesskeys\?(?!.*watch=)/, async (route) => {
      // It is sent by the test, and not by the page of the same origin.
      const response = await route.fetch({ headers: { accept: route.request().headers().accept, authorization: `Bearer ${admin}` } });
      const table = await response.json();
      table.columnDefinitions.push({ name: "Colour", description: "A column of a later version.", priority: 0, type: "string", format: "" });
      for (const row of table.rows) row.cells.push("green");
      await route.fulfill({ response, json: table });
    });
    await signIn(page);
    await page.getByRole("columnheader", { name: "Colour" }).waitFor();
    await page.getByRole("cell", { name: "green" }).first().waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the same with the keyboard alone, below the base path"() {
    const { context, page, problems } = await openWindow();
    await page.goto(`${origin}/kubernetes/management/console/keys`);
    await page.getByLabel("Access key", { exact: true }).waitFor();
    await page.keyboard.type(admin);
    await page.keyboard.press("Enter");
    await tabTo(page, page.getByRole("button", { name: "New key" }));
    await page.keyboard.press("Enter");
    await page.getByLabel("What is it for?").waitFor();
    await page.keyboard.type("By keyboard");
    await page.keyboard.press("Tab");
    await page.keyboard.type("typed");
    await page.keyboard.press("Enter");
    await tabTo(page, page.getByRole("button", { name: "I have saved it" }));
    await page.keyboard.press("Enter");
    await tabTo(page, page.getByRole("link", { name: "Open typed" }));
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a key that others make appears by itself, and the end of the session keeps what was typed"() {
    const { context, page } = await openWindow();
    await signIn(page);
    const mine = await createKey(page, "mine");
    const other = await openWindow();
    await signIn(other.page, mine);
    await other.page.getByRole("button", { name: "New key" }).click();
    await other.page.getByLabel("Name", { exact: true }).fill("typed-before");
    await page.getByRole("link", { name: "Open mine" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).waitFor();
    // The tab asks by itself, because it watches its own key.
    await other.page.getByLabel("Access key", { exact: true }).fill(admin);
    await other.page.getByRole("button", { name: "Sign in" }).click();
    await other.page.getByLabel("Access key", { exact: true }).waitFor({ state: "detached" });
    await other.page.getByRole("button", { name: "Create key" }).click();
    await other.page.getByRole("button", { name: "I have saved it" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    // The watch of the first window shows it.
    await page.getByRole("link", { name: "Open typed-before" }).waitFor();
    await other.context.close();
    await context.close();
  },
  async "a scope in YAML, and a field that is wrong"() {
    const { context, page } = await openWindow();
    await signIn(page);
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("scoped");
    await page.getByLabel("A scope in YAML").check();
    await page.getByLabel("Scope", { exact: true }).fill("roles:\n- role: absent");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("dialog").getByText("roles[0].role", { exact: true }).waitFor();
    await page.getByRole("alert").getByText("Correct the marked fields.").waitFor();
    await page.getByLabel("Scope", { exact: true }).fill("projects:\n- project: shop");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.getByRole("link", { name: "Open scoped" }).click();
    await page.getByRole("tab", { name: "What it may do" }).click();
    await page.getByRole("listitem").getByText("shop", { exact: true }).waitFor();
    await page.getByText("The scope in YAML").click();
    await page.getByText("- project: shop").waitFor();
    await context.close();
  },
  async "the dialog says what a scope permits, before there is a key"() {
    const { context, page, problems } = await openWindow();
    await signIn(page);
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByText("This permits").click();
    const answer = page.getByRole("dialog").getByRole("status");
    await answer.getByText("Permitted:", { exact: true }).waitFor();
    await page.getByLabel("Only ask who it is").check();
    await answer.getByText("Not permitted:").waitFor();
    await page.getByLabel("Everything in one project").check();
    await page.getByLabel("Project", { exact: true }).fill("shop");
    await answer.getByText("Not permitted:").waitFor();
    await page.getByLabel("Namespace", { exact: true }).fill("p-shop");
    await answer.getByText("Permitted:", { exact: true }).waitFor();
    await page.getByLabel("Resource", { exact: true }).fill("virtualclusterinstances/kubeconfig");
    await page.getByRole("combobox", { name: "Verb" }).selectOption("create");
    await page.getByLabel("A scope in YAML").check();
    await page.getByLabel("Scope", { exact: true }).fill("roles:\n- role: absent");
    await page.getByRole("dialog").getByRole("alert").getByText("spec.scope.roles[0].role").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "counts are of all keys, and a filter or an order reads on until all are read"() {
    const { context, page, problems } = await openWindow();
    const pages = await serveManyKeys(page, 4974);
    await signIn(page);
    await page.getByText("4,974 keys", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText("4,974 keys", { exact: true }).waitFor();
    // A key of the last page is found. Until it is, nothing says that nothing matches.
    pages.hold(1500);
    await page.getByRole("searchbox").fill("key-4973");
    await page.getByText("0 of the first 1,500 of 4,974, reading on").waitFor();
    await page.getByText("Nothing matches so far.").waitFor();
    assert.equal(await page.getByText("Nothing matches the filter.").count(), 0);
    pages.go();
    await page.getByText("1 of 4,974 keys", { exact: true }).waitFor();
    assert.equal(await page.locator("tbody tr").count(), 1);
    await page.getByRole("link", { name: "Open key-4973" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
    await page.getByRole("searchbox").fill("no such key");
    await page.getByText("Nothing matches the filter.").waitFor();
    // The order is of all keys as well, also with the keyboard.
    pages.hold(1000);
    await page.goto(`${origin}/console/keys`);
    await page.getByText("4,974 keys", { exact: true }).waitFor();
    await page.keyboard.press("Shift");
    const name = page.getByRole("columnheader", { name: "Name", exact: true }).getByRole("button");
    await pressWithKeyboard(page, name);
    await page.getByText("The first 1,000 of 4,974, reading on").waitFor();
    pages.go();
    await page.getByText("4,974 keys", { exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.locator("tbody th").first().getByText("key-4973").waitFor();
    // What cannot be read is not read on: it says so, and the button tries again.
    pages.hold(1000, 503);
    await page.goto(`${origin}/console/keys?filter=key-4973`);
    await page.getByRole("alert").waitFor();
    await page.getByText("0 of the first 1,000 of 4,974", { exact: true }).waitFor();
    pages.go();
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText("1 of 4,974 keys", { exact: true }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "of five thousand keys those are drawn that are seen, and assistive technologies know of all"() {
    const { context, page, problems } = await openWindow();
    await serveManyKeys(page, 5000);
    await signIn(page, admin, "/console/keys?sort=Name");
    await page.getByText("5,000 keys", { exact: true }).waitFor();
    const drawn = page.locator("tbody tr:not(.spacer)");
    assert.ok((await drawn.count()) <= 100);
    assert.equal(await page.getByRole("table").getAttribute("aria-rowcount"), "5001");
    assert.equal(await drawn.first().getAttribute("aria-rowindex"), "2");
    for (const [part, from, to] of [[0.5, 2400, 2600], [1, 4900, 5002], [0, 2, 100]]) {
      await page.evaluate((part) => scrollTo(0, document.documentElement.scrollHeight * part), part);
      await page.waitForFunction(([from, to]) => {
        // The row in the middle of the window.
        const row = document.elementFromPoint(innerWidth / 2, innerHeight / 2)?.closest("tr[aria-rowindex]");
        return row && row.ariaRowIndex >= from && row.ariaRowIndex <= to;
      }, [from, to]);
      assert.ok((await drawn.count()) <= 100);
    }
    // The tab key goes from row to row, beyond what was drawn.
    await focus(page.getByRole("link", { name: "Open key-0000", exact: true }));
    for (let row = 0; row < 60; row++) for (let step = 0; step < 2; step++) await page.keyboard.press("Tab");
    await page.waitForFunction(() => document.activeElement?.closest("tr")?.ariaRowIndex === "62");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    // All that are shown are selected, whether they are drawn or not.
    await page.getByRole("checkbox", { name: "Select all that are shown" }).check();
    await page.getByText("5,000 selected").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a CI author makes a key for one virtual cluster with the keyboard alone, and it does nothing else"() {
    const { context, page, problems } = await openWindow();
    await signInWithKeyboard(page, admin, "/console/keys");
    await pressWithKeyboard(page, page.getByRole("button", { name: "New key" }));
    const dialog = page.getByRole("dialog");
    await dialog.waitFor(); // before it is open, the page gets what is typed
    await page.keyboard.type("Deploys the shop");
    await page.keyboard.press("Tab");
    await page.keyboard.type("ci-typed");
    await tabTo(page, dialog.getByLabel("What the command line needs, read-only"));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await tabTo(page, dialog.getByLabel("Project", { exact: true }));
    await page.keyboard.type("shop");
    await page.keyboard.press("Tab");
    await page.keyboard.type("dev");
    await tabTo(page, dialog.getByLabel("1 day"));
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    const save = dialog.getByRole("button", { name: "Download" });
    await tabTo(page, save);
    const key = readFileSync(await saveDownload(page, () => page.keyboard.press("Enter")), "utf8").trim();
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "I have saved it" }));
    const made = await (await requestAsAdmin(context, "GET", "ownedaccesskeys/ci-typed")).json();
    assert.deepEqual([made.spec.ttl, made.spec.scope], [28_800, { virtualClusters: [{ project: "shop", virtualCluster: "dev" }] }]);
    const asked = async (path) => (await context.request.get(`${api}/${path}`, { headers: { Authorization: `Bearer ${key}`, Cookie: "" } })).status();
    assert.deepEqual([await asked("namespaces/p-shop/virtualclusterinstances/dev"), await asked("virtualclusterinstances"), await asked("users")], [200, 403, 403]);
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/ci-typed");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a list is sorted by its columns, and an object is found that is on no page that is shown"() {
    const { context, page, problems } = await openWindow();
    for (const [name, ttl] of [["sort-a", 7200], ["sort-b", 0], ["sort-c", 3600]]) await createAccessKey(context, name, { ttl });
    await signIn(page, admin, "/console/keys?filter=sort-");
    const names = async () => (await page.locator("tbody th").allTextContents()).map((one) => one.trim());
    const head = page.getByRole("columnheader", { name: "Expires" });
    for (const [order, want] of [[null, ["sort-a", "sort-b", "sort-c"]], ["ascending", ["sort-c", "sort-a", "sort-b"]], ["descending", ["sort-a", "sort-c", "sort-b"]]]) {
      if (order) await head.getByRole("button").click();
      assert.equal(await head.getAttribute("aria-sort"), order);
      assert.deepEqual(await names(), want);
    }
    await page.reload();
    await page.getByRole("table").waitFor();
    assert.deepEqual(await names(), ["sort-a", "sort-c", "sort-b"]);
    await page.keyboard.press("Shift");
    await pressWithKeyboard(page, head.getByRole("button"));
    assert.deepEqual(await names(), ["sort-a", "sort-b", "sort-c"]);
    // A key that ends soon gets more time.
    await pressWithKeyboard(page, page.getByRole("link", { name: "Open sort-c" }));
    const dialog = page.getByRole("dialog");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Change expiration …" }));
    await tabTo(page, dialog.getByLabel("7 days"));
    await page.keyboard.press("ArrowDown");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Change expiration", exact: true }));
    await dialog.getByText(/\(in (29|30) days\)/).waitFor();
    const { spec: { ttl } } = await (await requestAsAdmin(context, "GET", "ownedaccesskeys/sort-c")).json();
    assert.ok(ttl >= 2_592_000 && ttl < 2_593_000, `${ttl}`);
    // The list has more than one page.
    await page.route(/ownedaccesskeys\?(?!.*watch=)(?!.*continue=)/, async (route) => {
      const response = await route.fetch({ headers: { accept: route.request().headers().accept, authorization: `Bearer ${admin}` } });
      const table = await response.json();
      table.rows = table.rows.filter(({ object }) => object.metadata.name !== "sort-b");
      table.metadata.continue = "more";
      await route.fulfill({ response, json: table });
    });
    await page.goto(`${origin}/console/keys?name=sort-b`);
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).waitFor();
    await page.goto(`${origin}/console/keys?name=never-made`);
    await page.getByText("This key does not exist, or you may not see it.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    // A page that cannot be read says so, and the rows stay.
    await page.route(/ownedaccesskeys\?.*continue=/, (route) => route.fulfill({
      status: 410, contentType: "application/json", body: JSON.stringify({ kind: "Status", apiVersion: "v1", code: 410, message: "the list is too old" }),
    }));
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByRole("alert").getByText("the list is too old").waitFor();
    await page.getByRole("link", { name: "Open sort-a" }).waitFor();
    for (const [path, says] of [["tokens", "This does not exist"], ["projects", "This does not exist"], ["people", "This does not exist"], ["teams", "This does not exist"], ["trustrules", "This does not exist"], ["clusters", "This does not exist"]]) {
      await page.goto(`${origin}/console/${path}?name=p-none%2Fnever-made`);
      await page.getByRole("dialog").getByText(says).waitFor();
    }
    for (const name of ["sort-a", "sort-b", "sort-c"]) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a list of long names has its end and creation in sight, and is two lines on a phone"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    const name = `wide-${"x".repeat(58)}`;
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "wide-team-of-the-shop" }, spec: {} });
    await createAccessKey(context, name, { displayName: "Deploys the shop every night, with all of its parts", team: "wide-team-of-the-shop", ttl: 30 * 86_400, scope: { projects: [{ project: "shop" }, { project: "till" }], roles: [{ role: "platformCLI" }] } });
    await signIn(page, admin, "/console/keys?filter=wide-");
    const link = page.getByRole("link", { name: `Open ${name}` });
    const row = page.getByRole("row").filter({ has: link });
    const table = page.getByRole("region", { name: "Access keys" });
    const overflow = () => table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
    await link.waitFor();
    await page.setViewportSize({ width: 1280, height: 800 });
    assert.ok((await overflow()) <= 0, `${await overflow()}`);
    for (const head of ["Expires", "Last Activity", "Created"]) await page.getByRole("columnheader", { name: head }).waitFor();
    assert.equal(await page.getByRole("columnheader", { name: "Type" }).isVisible(), false);
    if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/keys-wide-1280.png` });
    await page.setViewportSize({ width: 1920, height: 800 });
    await page.getByRole("columnheader", { name: "Type" }).waitFor();
    // What is wider than the page is scrolled below the name.
    await page.setViewportSize({ width: 900, height: 800 });
    await table.evaluate((region) => { region.scrollLeft = region.scrollWidth; });
    const [left, tableLeft] = await Promise.all([link, table].map((one) => one.evaluate((it) => it.getBoundingClientRect().left)));
    assert.ok(left >= tableLeft, `${left} ${tableLeft}`);
    await page.setViewportSize({ width: 390, height: 800 });
    assert.ok((await overflow()) <= 0, `${await overflow()}`);
    await row.locator(".phone:visible").waitFor();
    assert.equal(await row.locator(".phone").evaluate((line) => line.dataset.line), "wide-team-of-the-shop");
    await row.getByText("in 30 days").waitFor();
    await assertAccessible(page, "a list on a phone");
    if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/keys-wide-390.png` });
    for (const path of [`ownedaccesskeys/${name}`, "teams/wide-team-of-the-shop"]) await requestAsAdmin(context, "DELETE", path);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a delete ends the object that is shown, and not a new one with its name"() {
    const { context, page, problems } = await openWindow();
    await createAccessKey(context, "reborn", {});
    await page.route(/watch=true/, () => {}); // the page shows what was there
    await signIn(page, admin, "/console/keys?name=reborn", page.getByRole("dialog"));
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await requestAsAdmin(context, "DELETE", "ownedaccesskeys/reborn");
    await createAccessKey(context, "reborn", {});
    await page.getByLabel("Type reborn to delete it").fill("reborn");
    const answered = page.waitForResponse((response) => response.request().method() === "DELETE");
    await dialog.getByRole("button", { name: "Delete" }).click();
    assert.equal((await answered).status(), 409);
    await dialog.getByRole("alert").waitFor();
    assert.equal((await requestAsAdmin(context, "DELETE", "ownedaccesskeys/reborn")).status(), 200, "the new key is gone");
    assert.deepEqual(problems, []);
    await context.close();
  },
};
