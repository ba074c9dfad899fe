// With PICTURES, pictures of the main pages for the README, of a platform on which somebody works.
import { admin, requestAsAdmin, focus, newFolder, openWindow, origin, pictureFolder, signIn } from "../driver.mjs";

export const stories = {};

if (pictureFolder) {
  stories["pictures for the README"] = async () => {
    const { context, page } = await openWindow({ viewport: { width: 1420, height: 800 }, colorScheme: "light", reducedMotion: "reduce" });
    const configureAudit = (audit) => requestAsAdmin(context, "PATCH", "config/config", { status: { audit } }, "application/merge-patch+json");
    await configureAudit({ enabled: true, level: 2, path: newFolder(), dataStoreEndpoint: process.env.EVENTS });
    const post = (resource, name, spec) => requestAsAdmin(context, "POST", resource, { metadata: { name }, spec });
    const made = [["users", "ana"], ["users", "ben"], ["teams", "web"]];
    await post("users", "ana", { displayName: "Ana", email: "ana@example.com" });
    await post("users", "ben", { displayName: "Ben", email: "ben@example.com" });
    await post("teams", "web", { displayName: "Web", users: ["ana", "ben"] });
    for (const [name, spec] of Object.entries({
      "ci-deploy": { user: "ana", displayName: "Deploys the shop", ttl: 3 * 86_400, scope: { projects: [{ project: "shop" }] } },
      "ana-laptop": { user: "ana", displayName: "Laptop of Ana", ttl: 20 * 86_400 }, "nightly": { team: "web", displayName: "Nightly builds", ttl: 86_400 },
      "ben-laptop": { user: "ben", displayName: "Laptop of Ben", disabled: true }, "reports": { user: "ben", displayName: "Reads for reports", scope: { roles: [{ role: "platformCLI" }] } },
    })) {
      await post("ownedaccesskeys", name, spec);
      made.push(["ownedaccesskeys", name]);
    }
    const shoot = (name) => page.screenshot({ path: `${pictureFolder}/readme-${name}.png` });
    await signIn(page, admin, "/console/home", page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }));
    await shoot("home");
    await page.goto(`${origin}/console/keys`);
    await page.getByRole("link", { name: "Open ci-deploy" }).waitFor();
    await shoot("keys");
    await page.getByRole("link", { name: "Open ci-deploy" }).click();
    await page.getByRole("dialog").getByText("Deploys the shop").first().waitFor();
    await shoot("key");
    await page.goto(`${origin}/console/clusters?name=p-shop/dev`);
    await page.getByRole("dialog").getByRole("button").first().waitFor();
    await shoot("cluster");
    await page.goto(`${origin}/console/audit`);
    await page.getByRole("row").nth(1).waitFor();
    await shoot("audit");
    await page.goto(`${origin}/console/home`);
    await page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }).click();
    await page.getByText("None that you may see.").waitFor();
    await shoot("kubeconfig");
    await page.goto(`${origin}/console/config`);
    await focus(page.getByRole("textbox", { name: "Configuration" }));
    await page.keyboard.press("Control+Home");
    await page.keyboard.insertText("platformHost: platform.example.com\n");
    await page.getByRole("button", { name: "Review the changes" }).click();
    await page.getByText("+ platformHost: platform.example.com").waitFor();
    await shoot("configuration");
    await page.goto(`${origin}/console/studio`);
    for (const side of ["From tenant to host", "From host to tenant"]) {
      await page.getByRole("region", { name: side, exact: true }).getByText("Evaluated.", { exact: true }).waitFor();
    }
    await page.setViewportSize({ width: 1420, height: 1000 });
    await shoot("studio");
    await configureAudit(null);
    for (const [resource, name] of made) await requestAsAdmin(context, "DELETE", `${resource}/${name}`);
    await context.close();
  };
}
