// Stories of virtual clusters and their kubeconfigs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import {
  accessReviews, admin, assertAccessibleIn, createAccessKey, createUserWithKey, kubectl, openWindow, pressWithKeyboard, requestAsAdmin, saveDownload, signIn, signInWithKeyboard, tabTo,
} from "../driver.mjs";

/** Reads a virtual cluster of p-till, or what is said in its place. */
const readTill = async (context, name) => (await requestAsAdmin(context, "GET", `namespaces/p-till/virtualclusterinstances/${name}`)).json();

export const stories = {
  async "a kubeconfig in three clicks after the sign-in, used by kubectl, and taken back"() {
    const { context, page, problems } = await openWindow();
    await signIn(page, admin, "/console", page.getByRole("heading", { name: "Virtual clusters" }));
    await page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }).click();
    await page.getByRole("button", { name: "Create kubeconfig" }).click();
    const file = await saveDownload(page, () => page.getByRole("button", { name: "Download" }).click());
    assert.match(file, /\/dev\.yaml$/);
    const used = await kubectl(file, "get", "namespaces");
    assert.match(used.text, /inside/);
    assert.equal(used.code, 0);
    const secret = readFileSync(file, "utf8").match(/token: (\S+)/)[1];
    await page.getByRole("button", { name: "I have saved it" }).click();
    assert.ok(!(await page.evaluate(() => document.documentElement.outerHTML)).includes(secret), "the page has kept the kubeconfig");
    // It is taken back on the page of the virtual cluster.
    await page.getByRole("link", { name: "p-shop/dev" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Kubeconfig" }).click();
    await page.getByRole("button", { name: /^Revoke / }).click();
    await page.getByText("None that you may see.").waitFor();
    assert.notEqual((await kubectl(file, "get", "namespaces")).code, 0);
    // A certificate works too. It has its own end.
    await page.getByLabel("A client certificate").check();
    await page.getByLabel("1 hour").check();
    await page.getByRole("button", { name: "Create kubeconfig" }).click();
    await page.getByText(/It expires on .*(in 59 min|in 60 min|in 1 hr)/).waitFor();
    const certificate = await saveDownload(page, () => page.getByRole("button", { name: "Download" }).click());
    assert.match(readFileSync(certificate, "utf8"), /client-certificate-data/);
    assert.match((await kubectl(certificate, "get", "ns")).text, /inside/);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a kubeconfig with the keyboard alone, and one without a secret"() {
    const { context, page, problems } = await openWindow();
    await signInWithKeyboard(page, admin, "/console/clusters");
    await tabTo(page, page.getByRole("link", { name: "Open dev" }));
    await page.keyboard.press("Enter");
    await tabTo(page, page.getByRole("dialog").getByRole("button", { name: "Kubeconfig" }));
    await page.keyboard.press("Enter");
    await tabTo(page, page.getByLabel("A token, which can be revoked"));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await tabTo(page, page.getByRole("button", { name: "Create kubeconfig" }));
    await page.keyboard.press("Enter");
    const download = page.getByRole("button", { name: "Download" });
    await download.waitFor();
    const file = await saveDownload(page, async () => {
      await tabTo(page, download);
      await page.keyboard.press("Enter");
    });
    const text = readFileSync(file, "utf8");
    assert.match(text, /--virtual-cluster=shop\/dev/);
    assert.ok(!text.includes(admin));
    const viewed = await kubectl(file, "config", "view", "-o", "jsonpath={.users[0].user.exec.command} {.clusters[0].cluster.server}");
    assert.match(viewed.text, /^platform https:\/\/127\.0\.0\.1:\d+$/);
    // The sheet has stayed, and its button has the focus.
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "p-shop/dev", exact: true }).waitFor();
    await page.waitForFunction(() => document.activeElement.textContent === "Kubeconfig");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a virtual cluster is registered, changed and deleted, and nothing that somebody else has written is lost"() {
    const { context, page, problems } = await openWindow();
    await requestAsAdmin(context, "POST", "projects", { metadata: { name: "till" }, spec: {} });
    const dev = await (await requestAsAdmin(context, "GET", "namespaces/p-shop/virtualclusterinstances/dev")).json();
    const authority = Buffer.from(dev.status.ingress.caData, "base64").toString();
    await signIn(page, admin, "/console/clusters");
    await page.getByRole("button", { name: "Register a virtual cluster" }).click();
    const dialog = page.getByRole("dialog");
    const field = (name) => dialog.getByLabel(name, { exact: true });
    await page.locator('datalist option[value="till"]').waitFor({ state: "attached" });
    // What is wrong is said at its field, all at once, and nothing typed is lost.
    await field("Project").fill("till");
    await dialog.getByText("It is registered in the namespace p-till.").waitFor();
    await field("Name").fill("Not A Name");
    await field("Display name").fill("Till of the shop");
    await field("Host and port").fill("not a host");
    await field("Certificate authority of the endpoint, in PEM").fill("no certificate");
    await field("A user").check();
    await field("Name of the team or user").fill("ana");
    await dialog.getByRole("button", { name: "Add an entry" }).click();
    await dialog.getByRole("button", { name: "Add an entry" }).click();
    await field("Users, separated by commas, entry 1").fill("ana, ben");
    await field("Teams, separated by commas, entry 1").fill("web");
    await field("Change its texts, entry 1").check();
    await field("Everything, like the owner, entry 2").check();
    assert.ok(await field("Delete it, entry 2").isDisabled());
    await dialog.getByRole("button", { name: "Register", exact: true }).click();
    await dialog.getByRole("alert").getByText("Correct the marked fields.").waitFor();
    for (const name of ["Name", "Host and port", "Certificate authority of the endpoint, in PEM", "Users, separated by commas, entry 2"]) {
      assert.equal(await field(name).getAttribute("aria-invalid"), "true", name);
      assert.notEqual(await dialog.locator(`[id="${await field(name).getAttribute("aria-describedby")}"]`).textContent(), "", name);
    }
    assert.ok(await field("Name").evaluate((it) => it === document.activeElement), "the first field that is wrong is not focused");
    await field("Name").fill("north");
    await field("Host and port").fill("till.example.com:6443");
    await field("Certificate authority of the endpoint, in PEM").fill(authority);
    await dialog.getByRole("button", { name: "Remove, entry 2" }).click();
    await dialog.locator("summary").click();
    const command = await dialog.locator("pre").textContent();
    await dialog.getByRole("button", { name: "Register", exact: true }).click();
    await page.getByText("p-till/north is registered.").waitFor();
    const { spec, status } = await readTill(context, "north");
    assert.deepEqual({ ...spec, accessPoint: null }, {
      displayName: "Till of the shop", owner: { user: "ana" }, access: [{ verbs: ["use", "update"], users: ["ana", "ben"], teams: ["web"] }], accessPoint: null,
    });
    assert.deepEqual([status.phase, status.ingress.host], ["Ready", "till.example.com:6443"]);
    assert.equal(Buffer.from(status.ingress.caData, "base64").toString().trim(), authority.trim());
    assert.deepEqual(JSON.parse(command.replace(/^[^{]*|[^}]*$/g, "")).spec, spec);
    // What is changed is written, and nothing else. A change that somebody else has made meanwhile is not overwritten.
    await page.getByRole("link", { name: "Open north" }).click();
    await dialog.getByRole("link", { name: "team web" }).waitFor();
    await dialog.getByRole("button", { name: "Change …" }).click();
    assert.equal(await field("Project").count() + await field("Name").count(), 0);
    assert.deepEqual([await field("Host and port").inputValue(), await field("Users, separated by commas, entry 1").inputValue()], ["till.example.com:6443", "ana, ben"]);
    await field("A team").check();
    await field("Name of the team or user").fill("web");
    assert.equal((await requestAsAdmin(context, "PATCH", "namespaces/p-till/virtualclusterinstances/north", { spec: { description: "by somebody else" } }, "application/merge-patch+json")).status(), 200);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("alert").waitFor();
    assert.equal(await field("Name of the team or user").inputValue(), "web");
    assert.deepEqual((await readTill(context, "north")).spec.owner, { user: "ana" });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.getByText("by somebody else").waitFor();
    await dialog.getByRole("button", { name: "Change …" }).click();
    await field("A team").check();
    await field("Name of the team or user").fill("web");
    await field("Certificate authority of the endpoint, in PEM").fill("");
    await dialog.getByRole("button", { name: "Remove, entry 1" }).click();
    const sent = page.waitForRequest((request) => request.method() === "PATCH");
    await dialog.getByRole("button", { name: "Save" }).click();
    assert.deepEqual((await sent).postDataJSON().spec, { access: null, owner: { user: null, team: "web" }, accessPoint: { ingress: { enabled: true, host: "till.example.com:6443", caData: null } } });
    await page.getByText("p-till/north is changed.").waitFor();
    const changed = (await readTill(context, "north")).spec;
    assert.deepEqual(changed, { displayName: "Till of the shop", description: "by somebody else", owner: { team: "web" }, accessPoint: { ingress: { enabled: true, host: "till.example.com:6443" } } });
    // The dialog says what ends with it, before it is deleted.
    assert.equal((await requestAsAdmin(context, "POST", "namespaces/p-till/virtualclusterinstances/north/kubeconfig", { spec: {} })).status(), 201);
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("Kubeconfigs with a token stop working at once. You see 1 of them.").waitFor();
    await dialog.getByText("Client certificates work until they expire.").waitFor();
    const remove = dialog.getByRole("button", { name: "Delete" });
    assert.ok(await remove.isDisabled());
    await field("Type north to delete it").fill("north");
    await remove.click();
    await page.getByText("p-till/north is deleted.").waitFor();
    await dialog.waitFor({ state: "detached" });
    assert.equal((await readTill(context, "north")).code, 404);
    await requestAsAdmin(context, "DELETE", "projects/till");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "an admin of a project registers virtual clusters in it with the keyboard, and who only uses them sees no such button"() {
    const { context, page, problems } = await openWindow();
    const refused = [];
    page.on("response", (response) => { if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`); });
    const [anaKey, benKey] = [await createUserWithKey(context, "ana-of-till"), await createUserWithKey(context, "ben-of-till")];
    for (const [name, role] of [["till", "admin"], ["elsewhere", "use"]]) {
      await requestAsAdmin(context, "POST", "projects", { metadata: { name }, spec: { members: [{ kind: "User", name: "ana-of-till", role }, { kind: "User", name: "ben-of-till", role: "use" }] } });
    }
    await signInWithKeyboard(page, anaKey, "/console/clusters");
    await page.getByText("There is no virtual cluster yet.").waitFor();
    await pressWithKeyboard(page, page.getByRole("button", { name: "Register one that runs already" }));
    const dialog = page.getByRole("dialog");
    const type = async (name, text) => {
      await tabTo(page, dialog.getByLabel(name, { exact: true }));
      await page.keyboard.press("Control+a");
      await page.keyboard.type(text);
    };
    // The API has decided where she may.
    assert.deepEqual(await dialog.getByLabel("Project", { exact: true }).locator("option").allTextContents(), ["till"]);
    await type("Name", "south");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Add an entry" }));
    await type("Users, separated by commas, entry 1", "cleo");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Register", exact: true }));
    await page.getByText("p-till/south is registered.").waitFor();
    assert.deepEqual((await readTill(context, "south")).spec, { access: [{ verbs: ["use"], users: ["cleo"] }] });
    await pressWithKeyboard(page, page.getByRole("link", { name: "Open south" }));
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Change …" }));
    await type("Host and port", "south.example.com");
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Save" }));
    await page.getByText("p-till/south is changed.").waitFor();
    await dialog.getByText("south.example.com", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    // Ben uses it.
    const other = await openWindow();
    other.page.on("response", (response) => { if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`); });
    const decided = accessReviews(other.page, 3);
    await signIn(other.page, benKey, "/console/clusters?name=p-till/south", other.page.getByRole("dialog"));
    await decided;
    await other.page.getByRole("dialog").getByRole("button", { name: "Kubeconfig" }).waitFor();
    assert.deepEqual(await other.page.getByRole("button", { name: /^(Register|Change|Delete)/ }).allTextContents(), []);
    await other.context.close();
    // A key of one project registers there, and nowhere else.
    const narrow = await createAccessKey(context, "narrow-till", { groups: ["platform:admins"], scope: { projects: [{ project: "till" }] } });
    await context.clearCookies();
    await signIn(page, narrow, "/console/clusters");
    await page.getByRole("button", { name: "Register a virtual cluster" }).click();
    assert.deepEqual(await dialog.getByLabel("Project", { exact: true }).locator("option").allTextContents(), ["till"]);
    await page.keyboard.press("Escape");
    await pressWithKeyboard(page, page.getByRole("link", { name: "Open south" }));
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Delete" }));
    await type("Type south to delete it", "south");
    await page.keyboard.press("Enter");
    await page.getByText("p-till/south is deleted.").waitFor();
    assert.deepEqual(refused, []);
    for (const path of ["projects/till", "projects/elsewhere", "ownedaccesskeys/narrow-till", "ownedaccesskeys/ana-of-till-key", "ownedaccesskeys/ben-of-till-key", "users/ana-of-till", "users/ben-of-till"]) {
      await requestAsAdmin(context, "DELETE", path);
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "who can reach a virtual cluster is drawn by the ways that lead to it, and it is said why somebody may not ask"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    assert.equal((await requestAsAdmin(context, "POST", "namespaces/p-shop/virtualclusterinstances/dev/kubeconfig", { spec: {} })).status(), 201);
    const asked = [];
    let answer;
    await page.route("**/scopepreviews?*", (route) => {
      const { spec } = route.request().postDataJSON();
      if (!spec.whoCan) return route.fallback();
      asked.push(spec.whoCan);
      return route.fulfill(answer);
    });
    const refuse = (code, message) => ({ status: code, contentType: "application/json", body: JSON.stringify({ kind: "Status", apiVersion: "v1", code, message }) });
    const say = (status) => ({ status: 201, contentType: "application/json", body: JSON.stringify({ kind: "ScopePreview", status }) });
    const many = Array.from({ length: 15 }, (_, i) => ({ user: `emi-${i}`, source: "Project", reason: 'role "use" in the project "shop"' }));
    answer = say({ subjects: [{ user: "ana", displayName: "Ana Look", source: "Owner", reason: "owner of the object" }, { team: "testers", source: "Access", reason: "spec.access" }, ...many, { user: "eve", teams: ["testers"], source: "Admin", reason: "member of platform:admins" }, { user: "joe", source: "Later", reason: "a rule of a later version" }] });
    await signIn(page, admin, "/console/clusters?name=p-shop/dev", page.getByRole("dialog"));
    const dialog = page.getByRole("dialog");
    assert.deepEqual(asked, [], "it was asked before anybody wanted to know");
    const tab = dialog.getByRole("tab", { name: "Who can reach it, and why" });
    await tab.click();
    const picture = dialog.getByRole("figure", { name: "The ways to p-shop/dev" });
    await picture.waitFor();
    assert.deepEqual(asked, [{ verb: "create", group: "management.platform.sh", resource: "virtualclusterinstances", subresource: "kubeconfig", namespace: "p-shop", name: "dev" }]);
    assert.deepEqual(await picture.locator(".way strong").allTextContents(), ["Owner", "Project", "Access entry", "Platform admin", "Another way", "Kubeconfig with a token"]);
    await picture.getByRole("link", { name: "user Ana Look (ana)" }).waitFor();
    await picture.getByRole("link", { name: "team testers" }).waitFor();
    await picture.getByText("user eve also as a member of the team testers").waitFor();
    assert.equal(await picture.getByRole("link", { name: "user emi-14" }).isVisible(), false);
    await picture.getByText("9 more").click();
    await picture.getByRole("link", { name: "user emi-14" }).waitFor();
    await assertAccessibleIn(["light", "dark", "forced colours", "400 %"], page, "who can reach it");
    // It is shown why somebody may not ask. The tab is in the address.
    answer = refuse(403, "only admins of the project may ask");
    await page.reload();
    await dialog.getByRole("alert").getByText("only admins of the project may ask").waitFor();
    answer = say({});
    await page.reload();
    await dialog.getByText("No user and no team can get a kubeconfig.").waitFor();
    assert.deepEqual(await picture.locator(".way strong").allTextContents(), ["Kubeconfig with a token"]);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "the platform names everybody who can reach a virtual cluster, by owner, project and access entry, and nobody else"() {
    const { context, page, problems } = await openWindow();
    const people = ["reach-owner", "reach-member", "reach-access"];
    for (const name of [...people, "reach-viewer", "reach-nobody"]) await requestAsAdmin(context, "POST", "users", { metadata: { name }, spec: {} });
    await requestAsAdmin(context, "POST", "projects", { metadata: { name: "reach" }, spec: { members: [{ kind: "User", name: "reach-member", role: "use" }, { kind: "User", name: "reach-viewer", role: "view" }] } });
    const made = await requestAsAdmin(context, "POST", "namespaces/p-reach/virtualclusterinstances", {
      metadata: { name: "one" }, spec: { owner: { user: "reach-owner" }, access: [{ verbs: ["use"], users: ["reach-access", "reach-member"] }, { verbs: ["update"], users: ["reach-viewer"] }] },
    });
    assert.equal(made.status(), 201);
    await signIn(page, admin, "/console/clusters?name=p-reach/one", page.getByRole("dialog"));
    const dialog = page.getByRole("dialog");
    await tabTo(page, dialog.getByRole("tab", { name: "About" }));
    await page.keyboard.press("ArrowRight");
    const picture = dialog.getByRole("figure");
    for (const [way, name] of [["Owner", "reach-owner"], ["Project", "reach-member"], ["Access entry", "reach-access"]]) {
      await picture.getByRole("listitem").filter({ has: page.locator(".way").getByText(way, { exact: true }) }).getByRole("link", { name: `user ${name}` }).waitFor();
    }
    const named = await picture.getByRole("link").allTextContents();
    assert.deepEqual(named.filter((name) => /reach-(viewer|nobody)/.test(name)), []);
    for (const path of ["namespaces/p-reach/virtualclusterinstances/one", "projects/reach", ...[...people, "reach-viewer", "reach-nobody"].map((name) => `users/${name}`)]) await requestAsAdmin(context, "DELETE", path);
    assert.deepEqual(problems, []);
    await context.close();
  },
};
