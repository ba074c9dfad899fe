// Stories of the first page.
import assert from "node:assert/strict";
import { admin, requestAsAdmin, openWindow, signIn } from "../driver.mjs";

export const stories = {
  async "the first page says what needs somebody"() {
    const { context, page, problems } = await openWindow();
    for (const [name, spec] of Object.entries({ "soon-over": { ttl: 86_400, displayName: "Nightly" }, "switched-off": { disabled: true }, "long-lived": {} })) {
      assert.equal((await requestAsAdmin(context, "POST", "ownedaccesskeys", { metadata: { name }, spec })).status(), 201);
    }
    await signIn(page, admin, "/console/home", page.getByRole("heading", { name: "Hello, admin" }));
    const part = (name) => page.locator("section", { has: page.getByRole("heading", { name, exact: true }) });
    await part("Access keys that expire within 7 days").getByRole("link", { name: "soon-over" }).waitFor();
    await part("Access keys that no longer work").getByText("Disabled by an admin").waitFor();
    assert.equal(await page.getByRole("link", { name: "long-lived" }).count(), 0);
    await part("Configuration").waitFor();
    await part("Access keys that no longer work").getByRole("link", { name: "switched-off" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable" }).waitFor();
    for (const name of ["soon-over", "switched-off", "long-lived"]) await requestAsAdmin(context, "DELETE", `ownedaccesskeys/${name}`);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a part that fails does not hide the others"() {
    const { context, page, problems } = await openWindow();
    await page.route("**/config/config/history", (route) => route.fulfill({
      status: 503, contentType: "application/json", body: JSON.stringify({ kind: "Status", apiVersion: "v1", code: 503, message: "no history now" }),
    }));
    await signIn(page, admin, "/console/home", page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }));
    await page.getByRole("alert").getByText("no history now").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
};
