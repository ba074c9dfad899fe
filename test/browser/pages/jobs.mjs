// The jobs for which people come to the console, and how many clicks each of them takes. MEASURE notes the seconds as well.
import assert from "node:assert/strict";
import { admin, createAccessKey, openWindow, recordFigure, requestAsAdmin, saveDownload, signIn } from "../driver.mjs";

export const stories = {
  async "eight jobs take no more clicks than they did"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    const created = async (resource, name, spec) => assert.equal((await requestAsAdmin(context, "POST", resource, { metadata: { name }, spec })).status(), 201, name);
    await created("users", "job-ana", {});
    await created("teams", "job-web", {});
    await created("projects", "job-shop", {});
    const leaked = await createAccessKey(context, "job-leaked", { user: "job-ana" });
    await createAccessKey(context, "job-nightly", { user: "job-ana", ttl: 2 * 86_400 });
    await signIn(page, admin, "/console/home", page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }));
    const menu = (name) => page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true });
    const button = (name) => page.getByRole("button", { name, exact: true });
    const dialog = page.getByRole("dialog");
    let clicks;
    const click = async (target) => {
      clicks++;
      await target.click();
    };
    const jobs = {
      "get a kubeconfig": [3, async () => {
        await click(button("Kubeconfig for p-shop/dev"));
        await click(button("Create kubeconfig"));
        await saveDownload(page, () => click(button("Download")));
      }],
      "end a key that was found": [3, async () => {
        await click(menu("Found a key?"));
        await page.getByLabel("The key or token that was found").fill(leaked);
        await click(button("Whose is it?"));
        await page.getByRole("link", { name: "user job-ana" }).waitFor();
        await click(button("End it now"));
        await page.getByText("Access key job-leaked of job-ana is ended.").waitFor();
      }],
      "make a key for a team": [4, async () => {
        await click(menu("Access keys"));
        await click(button("New key"));
        await dialog.getByLabel("Name", { exact: true }).fill("job-of-team");
        await click(dialog.getByLabel("A team"));
        await dialog.getByLabel("Name of the team or user").fill("job-web");
        await click(button("Create key"));
        await button("I have saved it").waitFor();
      }],
      "let a key work on that ends soon": [2, async () => {
        await click(button("Extend job-nightly"));
        await click(dialog.getByRole("button", { name: "Change expiration" }));
        await dialog.waitFor({ state: "detached" });
      }],
      "see who can reach a virtual cluster, and why": [2, async () => {
        await click(page.getByRole("link", { name: "p-shop/dev", exact: true }));
        await click(dialog.getByRole("tab", { name: "Who can reach it, and why" }));
        await dialog.getByRole("figure", { name: "The ways to p-shop/dev" }).waitFor();
      }],
      "see what a key did": [2, async () => {
        await click(page.getByRole("link", { name: "job-nightly", exact: true }).first());
        await click(dialog.getByRole("tab", { name: "Events" }));
        await dialog.getByRole("tabpanel").getByText(/requests of the last|is not known here/).waitFor();
      }],
      "register a virtual cluster": [3, async () => {
        await click(menu("Virtual clusters"));
        await click(page.getByRole("button", { name: "Register a virtual cluster" }).first());
        await dialog.getByLabel("Project", { exact: true }).fill("job-shop");
        await dialog.getByLabel("Name", { exact: true }).fill("job-dev");
        await click(dialog.getByRole("button", { name: "Register", exact: true }));
        await page.getByText("p-job-shop/job-dev is registered.").waitFor();
      }],
      "find an object by its name, with the keyboard": [0, async () => {
        await page.keyboard.press("/");
        await page.keyboard.type("job-of-team");
        await page.getByRole("dialog", { name: "Search" }).getByRole("option", { name: /^job-of-team/ }).waitFor();
        await page.keyboard.press("Enter");
        await page.getByRole("dialog", { name: "job-of-team" }).waitFor();
      }],
    };
    for (const [job, [most, work]] of Object.entries(jobs)) {
      // Each job begins on the first page.
      await page.goto(new URL("/console/home", page.url()).href);
      await page.getByRole("heading", { name: "Hello, admin" }).waitFor();
      clicks = 0;
      const begun = performance.now();
      await work();
      recordFigure(`${job}: ${clicks} clicks, ${((performance.now() - begun) / 1000).toFixed(1)} s by a program`);
      assert.ok(clicks <= most, `${job} takes ${clicks} clicks, and took ${most}`);
    }
    for (const path of ["namespaces/p-job-shop/virtualclusterinstances/job-dev", "ownedaccesskeys/job-of-team", "ownedaccesskeys/job-nightly", "projects/job-shop", "teams/job-web", "users/job-ana"]) {
      await requestAsAdmin(context, "DELETE", path);
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
};
