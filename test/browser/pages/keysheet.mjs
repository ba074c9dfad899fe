// Stories of the sheet of an access key: its tabs, what it may do, its lineage, its events, and how it works on.
import assert from "node:assert/strict";
import { admin, api, assertAccessible, createAccessKey, openWindow, origin, pictureFolder, pressWithKeyboard, requestAsAdmin, signIn, tabTo } from "../driver.mjs";

/** The parameters in the address of a page. */
const parameters = (page) => Object.fromEntries(new URL(page.url()).searchParams);
/** Creates an object with a key. */
async function createWith(context, bearer, path, data) {
  const answer = await context.request.post(`${api}/${path}`, { headers: { Authorization: `Bearer ${bearer}`, Cookie: "" }, data });
  assert.equal(answer.status(), 201, await answer.text());
  return (await answer.json()).spec.key;
}
/** Takes a picture in each look, if there is a folder for it. */
async function takePictures(page, about) {
  if (!pictureFolder) return;
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const width of [390, 1280, 2560]) {
      await page.setViewportSize({ width, height: 900 });
      await page.screenshot({ path: `${pictureFolder}/${about}-${colorScheme}-${width}.png` });
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1200, height: 800 });
}

export const stories = {
  async "the tabs of a key have an address, and the arrow keys go from tab to tab"() {
    const { context, page, problems } = await openWindow();
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "tab-team" }, spec: {} });
    await createAccessKey(context, "tabbed", { team: "tab-team", description: "Deploys the shop at night", scope: { projects: [{ project: "shop" }] } });
    await signIn(page, admin, "/console/keys?name=tabbed", page.getByRole("dialog").getByRole("tablist"));
    const tab = (name) => page.getByRole("tab", { name, exact: true });
    const chosen = () => page.getByRole("tab", { selected: true }).textContent();
    const panel = page.getByRole("tabpanel");
    assert.equal(await chosen(), "About");
    await panel.getByText("Deploys the shop at night").waitFor();
    // The owner is a link, and says what it is.
    assert.equal(await panel.getByRole("link", { name: "team tab-team" }).getAttribute("href"), "/console/teams?name=tab-team");
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
    await panel.getByRole("button", { name: "Copy the name" }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "tabbed");
    await takePictures(page, "key-about");
    await tab("What it may do").click();
    await panel.getByRole("region", { name: "Requests that it may send" }).waitFor();
    assert.deepEqual(parameters(page), { name: "tabbed", tab: "scope" });
    // With the keyboard: one tab takes part in the order of the tab key, and the panel follows.
    await tabTo(page, tab("What it may do"));
    for (const [key, name, address] of [["ArrowRight", "Lineage", "lineage"], ["ArrowRight", "Tokens", "tokens"], ["End", "Events", "events"], ["ArrowRight", "About", undefined], ["ArrowLeft", "Events", "events"], ["Home", "About", undefined], ["ArrowRight", "What it may do", "scope"]]) {
      await page.keyboard.press(key);
      assert.deepEqual([await chosen(), await tab(name).evaluate((it) => it === document.activeElement), parameters(page).tab], [name, true, address], key);
      assert.equal(await panel.getAttribute("aria-labelledby"), await tab(name).getAttribute("id"));
    }
    await page.keyboard.press("Tab");
    assert.ok(await panel.evaluate((it) => it === document.activeElement));
    // A page that is loaded again shows the same tab, and the next key begins with the first.
    await page.reload();
    await panel.getByRole("region", { name: "Requests that it may send" }).waitFor();
    assert.equal(await chosen(), "What it may do");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.deepEqual(parameters(page), {});
    await page.getByRole("link", { name: "Open tabbed" }).click();
    await panel.waitFor();
    assert.equal(await chosen(), "About");
    await tab("Events").click();
    await panel.getByText(/^The activity is not known here: audit events cannot be read/).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "what a key may do is a table of resources and verbs, where its scope is"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await createAccessKey(context, "wide", {});
    await createAccessKey(context, "narrowed", { scope: { virtualClusters: [{ project: "shop", virtualCluster: "dev" }], roles: [{ role: "platformCLI", projects: ["shop"] }], readOnly: true } });
    await createAccessKey(context, "others", { user: "somebody", scope: {} });
    const cell = async (resource, verb) => {
      const table = page.getByRole("tabpanel").getByRole("table");
      const column = (await table.getByRole("columnheader").allTextContents()).indexOf(verb);
      return table.getByRole("row").filter({ has: page.getByRole("rowheader", { name: resource, exact: true }) }).locator("th, td").nth(column).textContent();
    };
    await signIn(page, admin, "/console/keys?name=narrowed&tab=scope", page.getByRole("tabpanel").getByRole("table"));
    const panel = page.getByRole("tabpanel");
    await panel.getByText("Read-only: it may get, list and watch").waitFor();
    assert.equal(await panel.getByLabel("Namespace").inputValue(), "p-shop");
    assert.deepEqual([await cell("virtualclusterinstances", "get"), await cell("virtualclusterinstances", "delete"), await cell("teams", "get")], ["yes", "no", "no"]);
    await takePictures(page, "key-scope");
    await panel.getByText("The scope in YAML").click();
    assert.equal(await panel.locator("pre").last().textContent(), [
      "scope:", "  roles:", "  - role: platformCLI", "    projects:", "    - shop", "  virtualClusters:", "  - project: shop", "    virtualCluster: dev", "  readOnly: true",
    ].join("\n"));
    await assertAccessible(page, "what a key may do");
    // The same for another key, whose owner is the caller: what the caller may do.
    await page.goto(`${origin}/console/keys?name=wide&tab=scope`);
    await panel.getByRole("table").waitFor();
    await panel.getByText("Everything that its owner may do").waitFor();
    assert.deepEqual([await cell("teams", "create"), await cell("ownedaccesskeys", "delete")], ["yes", "yes"]);
    // A scope of somebody else permits them what they may do themselves.
    await page.goto(`${origin}/console/keys?name=others&tab=scope`);
    await panel.getByText("somebody may do less or more than you").waitFor();
    await panel.getByRole("table").waitFor();
    assert.deepEqual([await cell("teams", "list"), await cell("ownedaccesskeys", "create")], ["no", "yes"]);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a key of somebody else without a scope has the rights of its owner, who is named, and no table that nobody has asked for"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "scopeless" }, spec: {} });
    await createAccessKey(context, "scopeless", { team: "scopeless" });
    await createAccessKey(context, "grouped", { team: "scopeless", groups: ["platform:team:scopeless"] });
    await createAccessKey(context, "own-grouped", { groups: ["platform:admins"] });
    const previews = [];
    await signIn(page, admin, "/console/keys?name=scopeless", page.getByRole("dialog").getByRole("tablist"));
    page.on("request", (request) => { if (request.url().includes("/scopepreviews")) previews.push(request.postData()); });
    const panel = page.getByRole("tabpanel");
    const open = page.getByRole("tab", { name: "What it may do" });
    await open.click();
    await panel.getByText("No scope narrows this key: it may do what its owner may do, now and later.").waitFor();
    await panel.getByText("there is no table of the requests that this key may send").waitFor();
    assert.deepEqual([await panel.getByRole("table").count(), await panel.getByText("It acts in these groups alone").count(), previews], [0, 0, []]);
    await takePictures(page, "key-scopeless");
    await assertAccessible(page, "a key of somebody else without a scope");
    // The owner is a link, with the keyboard as well.
    await pressWithKeyboard(page, panel.getByRole("link", { name: "team scopeless" }));
    await page.getByRole("dialog", { name: "scopeless" }).waitFor();
    assert.equal(new URL(page.url()).pathname, "/console/teams");
    // A key with groups acts in no others.
    await page.goto(`${origin}/console/keys?name=grouped&tab=scope`);
    await panel.getByText("It acts in these groups alone: platform:team:scopeless").waitFor();
    assert.equal(await panel.getByRole("table").count(), 0);
    await page.goto(`${origin}/console/keys?name=own-grouped&tab=scope`);
    await panel.getByText("If the key has other groups, it may do less or more.").waitFor();
    await panel.getByRole("table").waitFor();
    // The first key is that of the session: the table is its own.
    await page.goto(`${origin}/console/keys?name=admin&tab=scope`);
    await panel.getByRole("table").waitFor();
    assert.equal(await panel.getByText("If the key has other groups").count(), 0);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the lineage of a key is a tree, and says what ends with the key"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    const root = await createAccessKey(context, "tree-root", { groups: ["platform:admins"] });
    const maker = await createWith(context, root, "ownedaccesskeys", { metadata: { name: "tree-maker" }, spec: { groups: ["platform:admins"], ttl: 86_400 } });
    const child = await createWith(context, maker, "ownedaccesskeys", { metadata: { name: "tree-child" }, spec: { ttl: 3600 } });
    await createWith(context, child, "ownedaccesskeys", { metadata: { name: "tree-grandchild" }, spec: { ttl: 600 } });
    await createWith(context, child, "directclusterendpointtokens", { spec: { ttl: 600 } });
    await createWith(context, root, "users", { metadata: { name: "tree-user" }, spec: {} });
    await createWith(context, root, "teams", { metadata: { name: "tree-team" }, spec: {} });
    await createWith(context, root, "projects", { metadata: { name: "tree-project" }, spec: {} });
    await signIn(page, admin, "/console/keys?name=tree-root&tab=lineage", page.getByRole("tabpanel").getByText("tree-grandchild"));
    const tree = page.getByRole("tabpanel").getByRole("list").first();
    /** The entries of the tree: how deep each is, and what it says. */
    const entries = () => tree.locator(".node").evaluateAll((all) => all.map((one) => {
      let depth = 0;
      for (let at = one.parentElement.parentElement; at.matches("ul") && !at.matches(".tree"); at = at.parentElement.parentElement) depth++;
      return `${"  ".repeat(depth)}${one.textContent.replace(/\s+/g, " ").trim()}`;
    }));
    assert.deepEqual(await entries(), [
      "admin", "  tree-root", "    tree-maker Stays", "      tree-child Stays", "        tree-grandchild Stays", "        1 token Stays", "    People: tree-user Stays", "    Teams: tree-team Stays", "    Projects: tree-project Stays",
    ]);
    await takePictures(page, "key-lineage");
    await assertAccessible(page, "the lineage of a key with children");
    // A key with an end bounds what was created with it. The tree leads to it, with the keyboard, and the tab stays.
    await pressWithKeyboard(page, tree.getByRole("button", { name: "tree-maker" }));
    await page.getByRole("dialog", { name: "tree-maker" }).getByText("Ends with it").first().waitFor();
    assert.deepEqual(await entries(), ["admin", "  tree-root", "    tree-maker", "      tree-child Ends with it", "        tree-grandchild Ends with it", "        1 token Ends with it"]);
    assert.deepEqual(parameters(page), { name: "tree-maker", tab: "lineage" });
    await takePictures(page, "key-lineage-ends");
    await assertAccessible(page, "the lineage of a key that bounds others");
    await tree.getByRole("button", { name: "tree-grandchild" }).click();
    await page.getByRole("dialog", { name: "tree-grandchild" }).getByText("Nothing that you may see").waitFor();
    assert.deepEqual(await entries(), ["admin", "  tree-root", "    tree-maker tree-grandchild ends with it", "      tree-child tree-grandchild ends with it", "        tree-grandchild"]);
    await page.goBack();
    await page.getByRole("dialog", { name: "tree-maker" }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the tokens that were issued with a key are in a tab, and lead to their sheets"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    const issuer = await createAccessKey(context, "issuer", {});
    const other = await createAccessKey(context, "issues-too", {});
    const issue = async (bearer, spec) => {
      const answer = await context.request.post(`${api}/directclusterendpointtokens`, { headers: { Authorization: `Bearer ${bearer}`, Cookie: "" }, data: { spec } });
      assert.equal(answer.status(), 201, await answer.text());
      return (await answer.json()).metadata.name;
    };
    const narrow = await issue(issuer, { ttl: 600, scope: { clusters: [{ cluster: "prod-eu" }], virtualClusters: [{ project: "shop", virtualCluster: "dev" }] } });
    const wide = await issue(issuer, { ttl: 3600 });
    const foreign = await issue(other, { ttl: 3600 });
    await signIn(page, admin, "/console/keys?name=issuer", page.getByRole("dialog").getByRole("tablist"));
    const panel = page.getByRole("tabpanel");
    await page.getByRole("tab", { name: "Tokens" }).click();
    await panel.getByText("2 tokens").waitFor();
    // The token that works longest is first.
    const lines = async () => (await panel.getByRole("listitem").allTextContents()).map((line) => line.replace(/Expires in .*$/, "Expires"));
    assert.deepEqual(await lines(), [`${wide}Every cluster that the key permitsExpires`, `${narrow}virtualcluster:shop/devcluster:prod-euExpires`]);
    assert.equal(await panel.getByText(foreign).count(), 0);
    await takePictures(page, "key-tokens");
    await assertAccessible(page, "the tokens of a key");
    await panel.getByRole("link", { name: narrow }).click();
    await page.getByRole("dialog", { name: narrow }).getByRole("link", { name: "issuer" }).waitFor();
    // Back, and with the keyboard.
    await page.goBack();
    await panel.getByText("2 tokens").waitFor();
    await pressWithKeyboard(page, panel.getByRole("link", { name: wide }));
    await page.getByRole("dialog", { name: wide }).getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.goto(`${origin}/console/keys?name=issuer&tab=tokens`);
    await panel.getByText("1 token", { exact: true }).waitFor();
    // The tokens of a disabled key do not work.
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await panel.getByText("The key is disabled, so none of them works.").waitFor();
    assert.deepEqual(await lines(), [`${narrow}virtualcluster:shop/devcluster:prod-euDoes not work`]);
    await page.goto(`${origin}/console/keys?name=admin&tab=tokens`);
    await panel.getByText("No token that you may see was issued with this key.").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the tokens of a key are selected by the API, and the tab says when not all are read"() {
    const { context, page, problems } = await openWindow();
    await createAccessKey(context, "many-tokens", {});
    const { metadata: { uid } } = await (await requestAsAdmin(context, "GET", "ownedaccesskeys/many-tokens")).json();
    const asked = [];
    // The API looks through all tokens, so that a page can be empty and have a successor.
    await page.route(/directclusterendpointtokens\?/, (route) => {
      const query = new URL(route.request().url()).searchParams;
      asked.push([query.get("fieldSelector"), query.get("continue")]);
      const count = asked.length;
      return route.fulfill({ contentType: "application/json", body: JSON.stringify({
        kind: "Table", metadata: { resourceVersion: "1", ...(count < 4 && { continue: `page-${count}` }) }, columnDefinitions: [{ name: "Name" }, { name: "Scope" }],
        rows: count === 2 ? [] : [{ cells: [`token-${count}`, "<none>"], object: { metadata: { name: `token-${count}`, uid: `${count}`, creationTimestamp: "2026-01-01T00:00:00Z" }, status: { expirationTimestamp: `20${30 + count}-01-01T00:00:00Z` } } }],
      }) });
    });
    await signIn(page, admin, "/console/keys?name=many-tokens", page.getByRole("dialog").getByRole("tablist"));
    // The count of what is deleted with the key is another reading.
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).waitFor();
    asked.length = 0;
    const panel = page.getByRole("tabpanel");
    await page.getByRole("tab", { name: "Tokens" }).click();
    await panel.getByText("2 tokens so far. Not all tokens are read yet.").waitFor();
    await pressWithKeyboard(page, panel.getByRole("button", { name: "Show more" }));
    await panel.getByText("3 tokens", { exact: true }).waitFor();
    assert.deepEqual(await panel.getByRole("link").allTextContents(), ["token-4", "token-3", "token-1"]);
    const selector = `status.createdBy.uid=${uid}`;
    assert.deepEqual(asked, [[selector, null], [selector, "page-1"], [selector, "page-2"], [selector, "page-3"]]);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a session that may not list tokens has no tab of them"() {
    const { context, page, problems } = await openWindow();
    const key = await createAccessKey(context, "no-tokens", { scope: { rules: [{ verbs: ["get", "list", "watch"], resources: [{ group: "management.platform.sh", resources: ["ownedaccesskeys"] }] }] } });
    await signIn(page, key, "/console/keys?name=no-tokens", page.getByRole("tab", { name: "Lineage" }));
    assert.equal(await page.getByRole("tab", { name: "Tokens" }).count(), 0);
    await page.goto(`${origin}/console/keys?name=no-tokens&tab=tokens`);
    await page.getByRole("tabpanel", { name: "About" }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a key that ends soon works on with one press"() {
    const { context, page, problems } = await openWindow();
    await createAccessKey(context, "soon", { ttl: 47 * 3600 });
    await createAccessKey(context, "later", { ttl: 30 * 86_400 });
    await signIn(page, admin, "/console/keys?name=later", page.getByRole("dialog").getByRole("button", { name: "Disable" }));
    assert.equal(await page.getByRole("group", { name: "Let it work on" }).count(), 0);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Open soon" }).click();
    const group = page.getByRole("group", { name: "Let it work on, from now, for" });
    const ttl = async () => (await (await requestAsAdmin(context, "GET", "ownedaccesskeys/soon")).json()).spec.ttl;
    await group.waitFor();
    // A day from now is earlier than the end of the key: no button shortens it.
    assert.deepEqual((await group.getByRole("button").allTextContents()).map((label) => label.replace(/ [A-Z].*/, "")), ["7 days", "30 days", "90 days"]);
    await group.getByRole("button", { name: /^7 days [A-Z][a-z]{2} \d+, \d{4}$/ }).click();
    await page.getByRole("dialog").getByText(/^It now expires on /).waitFor();
    assert.ok((await ttl()) >= 604_800 && (await ttl()) < 605_800, `${await ttl()}`);
    await group.getByRole("button", { name: "7 days", disabled: true }).waitFor();
    // The buttons stay, so that the keyboard goes on from there.
    await pressWithKeyboard(page, group.getByRole("button", { name: "30 days" }));
    await page.getByRole("dialog").getByText(/\(in 30 days\)/).waitFor();
    assert.ok((await ttl()) >= 2_592_000 && (await ttl()) < 2_593_000, `${await ttl()}`);
    await assertAccessible(page, "a key that works on");
    if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/key-extended.png` });
    // To end it earlier, there is the dialog, which says so.
    await page.getByRole("button", { name: "Change expiration …" }).click();
    await page.getByRole("dialog").getByLabel("90 days").check();
    assert.equal(await page.getByRole("dialog").getByText("This shortens").count(), 0);
    await page.getByRole("dialog").getByLabel("1 day").check();
    await page.getByRole("dialog").getByText(/^This shortens the life of the key: it ends on .* instead of /).waitFor();
    if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/key-shortened.png` });
    await page.getByRole("button", { name: "Change expiration" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).waitFor();
    assert.ok((await ttl()) >= 86_400 && (await ttl()) < 87_400, `${await ttl()}`);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a dialog opens over its sheet, and gives the focus back to its button"() {
    const { context, page, problems } = await openWindow();
    await createAccessKey(context, "below", {});
    for (const resource of ["users", "teams", "projects"]) await requestAsAdmin(context, "POST", resource, { metadata: { name: "below" }, spec: {} });
    await signIn(page);
    const dialog = page.getByRole("dialog");
    for (const [path, buttons] of [["keys", ["Delete", "Change expiration …"]], ["people", ["Delete", "Set password …"]], ["teams", ["Delete"]], ["projects", ["Delete", "Change …"]]]) {
      await page.goto(`${origin}/console/${path}?name=below`);
      for (const label of buttons) {
        const button = dialog.getByRole("button", { name: label, exact: true });
        await pressWithKeyboard(page, button);
        await page.waitForFunction(() => document.querySelectorAll("dialog[open]").length === 2);
        await assertAccessible(page, `${label} of ${path}`);
        await page.keyboard.press("Escape");
        await page.waitForFunction(() => document.querySelectorAll("dialog[open]").length === 1);
        assert.ok(await button.evaluate((it) => it === document.activeElement), `${label} of ${path}`);
      }
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a sheet whose script an upgrade has removed says so, and loads the page again at the same address"() {
    const { context, page, problems } = await openWindow();
    await createAccessKey(context, "upgraded", {});
    await signIn(page, admin, "/console/home", page.getByRole("heading", { name: "Hello, admin" }));
    await page.route("**/assets/sheet-*.js", (route) => route.fulfill({ status: 404, contentType: "application/json", body: "{}" }));
    await page.goto(`${origin}/console/keys?name=upgraded`);
    const dialog = page.getByRole("dialog", { name: "The console has changed" });
    await dialog.waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Open upgraded" }).click();
    await dialog.waitFor();
    await page.unroute("**/assets/sheet-*.js");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Load the page again" }));
    await page.getByRole("dialog", { name: "upgraded" }).getByRole("button", { name: "Disable" }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
};
