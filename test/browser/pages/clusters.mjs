// Stories of virtual clusters and their kubeconfigs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { admin, saveDownload, kubectl, openWindow, signIn, tabTo, signInWithKeyboard } from "../driver.mjs";

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
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  },
};
