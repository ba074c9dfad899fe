// Stories of accessibility: what axe finds on each page, what assistive technologies are told, and where the focus is.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { allLooks, assertAccessible, assertAccessibleIn, admin, api, requestAsAdmin, focus, inAllLooks, createAccessKey, openWindow, origin, pictureFolder, pressWithKeyboard, signIn } from "../driver.mjs";

/** Returns what assistive technologies are told about a part of the page, without what differs from run to run: rows, entries of lists, times and names. */
async function ariaOutline(part) {
  const kept = [];
  let below = Infinity, tables = 0;
  for (const line of (await part.ariaSnapshot()).split("\n")) {
    const depth = line.search(/\S/);
    if (depth > below) continue;
    below = Infinity;
    const [, role] = line.match(/^\s*- (\w+)/) ?? [];
    if (role === "table") tables = 0;
    if (role === "rowgroup" && ++tables > 1 || role === "listitem") {
      below = depth;
      continue;
    }
    // A list that is empty on one day has entries on another.
    if (role === "list" || /^\s*- paragraph: (None|Nothing)\.$/.test(line)) continue;
    kept.push(line
      .replace(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g, "ID").replace(/\(request [0-9a-f]{32}\)/g, "(request ID)").replace(/127\.0\.0\.1:\d+/g, "HOST").replace(/\b[A-Z][a-z]{2} \d+, \d{4}, [\d:]+ [AP]M/g, "TIME")
      .replace(/(in )?\b\d+ (sec|min|hr|days?)\b\.?( ago)?/g, "SPAN").replace(/\b\d+ (keys|key|entries|entry)\b/g, "COUNT").replace(/Revision \d+/g, "Revision N")
      .replace(/The highest bar: \d+/g, "The highest bar: N").replace(/\b[A-Z][a-z]{2} \d+, \d{4}: .*\d signers/g, "BARS"));
  }
  return `${kept.join("\n")}\n`;
}

/** Makes what the pages show, signs in, and looks at each page. */
function everyPage(name, walk) {
  return inAllLooks(`every page is accessible: ${name}`, async (looks) => {
    const { context, page } = await openWindow({ reducedMotion: "reduce" });
    await requestAsAdmin(context, "POST", "users", { metadata: { name: "look" }, spec: { displayName: "Ana Look", email: "look@example.com" } });
    await requestAsAdmin(context, "POST", "teams", { metadata: { name: "look" }, spec: { users: ["look"] } });
    await requestAsAdmin(context, "POST", "trustrules", { metadata: { name: "look" }, spec: {
      issuer: "https://gitlab.com", match: [{ claim: "project_id", is: "22" }, { claim: "ref", isOneOf: ["main", "next"] }], owner: { team: "look" }, scope: { projects: [{ project: "shop" }] },
    } });
    await requestAsAdmin(context, "POST", "projects", { metadata: { name: "look" }, spec: { owner: { team: "look" }, members: [{ kind: "User", name: "look", role: "use" }] } });
    const maker = await createAccessKey(context, "look-a", { ttl: 2 * 86_400 });
    await context.request.post(`${api}/ownedaccesskeys`, { headers: { Authorization: `Bearer ${maker}`, Cookie: "" }, data: { metadata: { name: "look-b" }, spec: {} } });
    // The configuration has a history, and is what it was.
    for (const platformHost of ["before.example.com", null]) {
      assert.equal((await requestAsAdmin(context, "PATCH", "config/config", { status: { platformHost } }, "application/merge-patch+json")).status(), 200);
    }
    const differences = [];
    const look = async (about) => {
      await page.waitForFunction((loading) => !document.body.innerText.includes(loading), "Loading …");
      await assertAccessibleIn(looks, page, about);
      const dialog = page.locator("dialog[open]");
      const said = await ariaOutline((await dialog.count()) > 0 ? dialog.last() : page.locator("body"));
      const file = new URL(`../aria/${about}.yaml`, import.meta.url);
      if (process.env.ARIA === "write") writeFileSync(file, said);
      else if (!existsSync(file) || readFileSync(file, "utf8") !== said) differences.push(`${about}:\n${said}`);
    };
    await walk(page, look);
    // With ARIA=write, the files are written anew.
    assert.deepEqual(differences, [], "assistive technologies are told something else than test/browser/aria says");
    for (const path of ["ownedaccesskeys/look-b", "ownedaccesskeys/look-a", "trustrules/look", "projects/look", "teams/look", "users/look"]) await requestAsAdmin(context, "DELETE", path);
    await context.close();
  });
}

export const stories = {
  async "without JavaScript, the page has the commands"() {
    const { context, page } = await openWindow({ javaScriptEnabled: false });
    await page.goto(`${origin}/console`);
    const commands = await page.locator("noscript pre").textContent();
    for (const one of ["get ownedaccesskeys", "get virtualclusterinstances", "platform kubeconfig", "edit config", "platform patch eval"]) assert.ok(commands.includes(one), one);
    await context.close();
  },
  async "on a phone, the pages are in a menu"() {
    const { context, page, problems } = await openWindow({ viewport: { width: 320, height: 640 }, reducedMotion: "reduce" });
    await signIn(page);
    const teams = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Teams" });
    assert.equal(await teams.isVisible(), false);
    await page.getByRole("button", { name: "Menu" }).click();
    await teams.waitFor();
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await assertAccessible(page, `the menu, ${colorScheme}`);
      if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/menu-${colorScheme}.png` });
    }
    await page.keyboard.press("Escape");
    await teams.waitFor({ state: "hidden" });
    await pressWithKeyboard(page, page.getByRole("button", { name: "Menu" }));
    await pressWithKeyboard(page, teams);
    await page.getByRole("heading", { level: 1, name: "Teams" }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
};

const seenFocus = inAllLooks("what has the focus is seen: it has a frame, and nothing covers it", async (looks) => {
  const { context, page, problems } = await openWindow();
  await signIn(page);
  /** Goes over everything that the tab key reaches, and returns what cannot be seen. */
  const walkOver = async (about, least) => {
    const seen = new Set();
    for (let left = 80; left > 0; left--) {
      await page.keyboard.press("Tab");
      // An editor draws its frame a moment later.
      await page.evaluate(() => new Promise((done) => setTimeout(() => requestAnimationFrame(done), 30)));
      const found = await page.evaluate(() => {
        let at = document.activeElement;
        const host = at;
        while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
        if (!at || at === document.body) return null;
        const framed = at.closest(".cm-editor") ?? (at.matches("input.hidden, input.unseen") ? at.parentElement : at);
        const { outlineStyle, outlineWidth } = getComputedStyle(framed);
        const { left, top, right, bottom } = framed.getBoundingClientRect();
        const [x, y] = [[left, right, innerWidth], [top, bottom, innerHeight]].map(([from, to, end]) => [Math.max(from, 0) + 1, (Math.max(from, 0) + Math.min(to, end)) / 2, Math.min(to, end) - 1]);
        const shown = x.some((x) => y.some((y) => {
          const hit = document.elementFromPoint(x, y);
          return hit && (framed.contains(hit) || hit.contains(framed) && hit !== document.body && hit !== document.documentElement && !hit.matches("header") || hit === host);
        }));
        const known = (globalThis.walked ??= new Map());
        if (!known.has(at)) known.set(at, known.size);
        return { id: known.get(at), name: `${at.tagName} ${at.ariaLabel ?? at.textContent.slice(0, 40)}`, outline: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2, shown };
      });
      if (found === null) break;
      if (seen.has(found.id) && seen.size >= least) break;
      seen.add(found.id);
      assert.ok(found.outline, `${about}: ${found.name} has no frame`);
      assert.ok(found.shown, `${about}: ${found.name} is covered`);
    }
    assert.ok(seen.size >= least, `${about}: the tab key reaches ${seen.size} elements`);
  };
  for (const look of looks) {
    const { width, height, ...media } = allLooks[look];
    await page.setViewportSize({ width, height });
    await page.emulateMedia(media);
    for (const [name, least] of [["home", 3], ["keys", 8], ["config", 5], ["studio", 10], ["audit", 7]]) {
      await page.goto(`${origin}/console/${name}`);
      await page.locator("main h1").waitFor();
      if (name === "config" || name === "studio") await page.getByRole("textbox", { name: "Configuration" }).waitFor();
      await walkOver(`${name} in ${look}`, least);
    }
    await page.goto(`${origin}/console/keys`);
    await page.getByRole("button", { name: "New key" }).click();
    await walkOver(`a new key in ${look}`, 8);
  }
  // Nobody sees movement who asked for none.
  const moves = () => page.evaluate(() => [...document.querySelectorAll("*")].filter((one) => {
    const { transitionDuration, animationName } = getComputedStyle(one);
    return parseFloat(transitionDuration) > 0 || animationName !== "none";
  }).length);
  assert.ok((await moves()) > 0);
  await page.emulateMedia({ reducedMotion: "reduce" });
  assert.equal(await moves(), 0);
  assert.deepEqual(problems, []);
  await context.close();
});

const ownPages = everyPage("keys, virtual clusters and tokens", async (page, look) => {
  await page.goto(`${origin}/console`);
  await page.getByLabel("Access key", { exact: true }).waitFor();
  await look("sign-in");
  await signIn(page);
  await look("keys");
  await page.getByRole("checkbox", { name: "Select admin", exact: true }).check();
  await page.getByRole("checkbox", { name: "Select look-a", exact: true }).check();
  const chosen = page.locator(".tools > button");
  await chosen.getByText("Disable", { exact: true }).waitFor();
  await look("keys-selected");
  for (const [button, about] of [["Disable", "disable-several"], ["Delete", "delete-several"]]) {
    await chosen.getByText(button, { exact: true }).click();
    await look(about);
    await page.keyboard.press("Escape");
  }
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("A scope in YAML").check();
  await page.getByText("This permits").click();
  await page.getByText("Permitted in this namespace").waitFor();
  await page.getByRole("dialog").getByText("Permitted:", { exact: true }).or(page.getByRole("dialog").getByText("Not permitted:")).waitFor();
  await look("new-key");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("link", { name: "Open admin" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Change expiration …" }).waitFor();
  await look("key");
  await page.getByRole("tab", { name: "What it may do" }).click();
  await page.getByRole("region", { name: "Requests that it may send" }).waitFor();
  await look("key-scope");
  await page.goto(`${origin}/console/keys?name=look-b&tab=lineage`);
  await page.getByText("Nothing that you may see was created with this key.").waitFor();
  await look("key-lineage");
  await page.getByRole("button", { name: "look-a" }).click();
  await page.getByText("Ends with it").waitFor();
  await look("key-lineage-children");
  await page.getByRole("tab", { name: "Events" }).click();
  await look("key-events");
  await page.goto(`${origin}/console/keys?name=admin`);
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await look("delete");
  await page.goto(`${origin}/console`);
  await page.getByRole("button", { name: "Kubeconfig for p-shop/dev" }).waitFor();
  await page.getByRole("heading", { name: "The first hour" }).waitFor();
  await look("home");
  await page.goto(`${origin}/console/clusters`);
  await page.getByRole("button", { name: "Register a virtual cluster" }).click();
  await page.getByRole("button", { name: "Add an entry" }).click();
  await look("new-cluster");
  await page.goto(`${origin}/console/clusters`);
  await page.getByRole("link", { name: "Open dev" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Kubeconfig" }).waitFor();
  await look("cluster");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("You see none.").waitFor();
  await look("delete-cluster");
  await page.getByRole("button", { name: "Back" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Kubeconfig" }).click();
  await page.getByText("None that you may see.").waitFor();
  await look("kubeconfig");
  await page.getByLabel("No secret").check();
  await page.getByRole("button", { name: "Create kubeconfig" }).click();
  await page.getByRole("button", { name: "Show" }).click();
  await look("kubeconfig-made");
  await page.goto(`${origin}/console/tokens`);
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByLabel("A scope in YAML").check();
  await look("new-token");
  await page.getByLabel("Everything in one project").check();
  await page.getByLabel("Project", { exact: true }).fill("shop");
  await page.getByRole("button", { name: "Issue token" }).click();
  await page.getByText("Issuer (iss)").waitFor();
  await look("token");
  await page.getByRole("button", { name: "I have saved it" }).click();
});
const adminPages = everyPage("people, rules, configuration and studio", async (page, look) => {
  await signIn(page, admin, "/console/people", page.getByRole("link", { name: "Open look" }));
  await page.getByRole("link", { name: "Open look" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Set password" }).waitFor();
  await page.getByRole("dialog").getByText("None that works.").waitFor();
  await look("user");
  await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
  await look("user-disable");
  await page.goto(`${origin}/console/teams`);
  await page.getByRole("link", { name: "Open look" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove look" }).waitFor();
  await look("team");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "New team" }).click();
  await look("new-team");
  await page.goto(`${origin}/console/projects`);
  await page.getByRole("button", { name: "New project" }).click();
  await page.getByRole("button", { name: "Add a member" }).click();
  await look("new-project");
  await page.goto(`${origin}/console/projects?name=look`);
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).waitFor();
  await page.getByRole("dialog").getByRole("heading", { name: "Virtual clusters" }).waitFor();
  await look("project");
  await page.goto(`${origin}/console/trustrules`);
  await page.getByRole("button", { name: "New trust rule" }).click();
  await look("new-trust-rule");
  await page.getByLabel("Name", { exact: true }).fill("Not A Name");
  await page.getByLabel("Value, condition 1").fill("a*");
  await page.getByLabel("Name of the team or user").fill("web");
  await page.getByLabel("Everything in one project").check();
  await page.getByLabel("Project", { exact: true }).fill("shop");
  await page.getByRole("button", { name: "Create trust rule" }).click();
  await page.getByText("conditions have no wildcards").first().waitFor();
  await look("trust-rule-refused");
  await page.goto(`${origin}/console/trustrules?name=look`);
  await page.getByRole("dialog").getByRole("button", { name: "Disable" }).waitFor();
  await look("trust-rule");
  await page.goto(`${origin}/console/config`);
  await focus(page.getByRole("textbox", { name: "Configuration" }));
  await page.keyboard.press("Control+Home");
  await page.keyboard.insertText("platformHost: look.example.com\n");
  await page.keyboard.press("ArrowUp");
  await page.getByRole("heading", { name: "platformHost", exact: true }).waitFor();
  await look("config");
  await page.getByRole("button", { name: "Review the changes" }).click();
  await page.getByText("+ platformHost: look.example.com").waitFor();
  await look("config-review");
  await page.goto(`${origin}/console/studio`);
  for (const side of ["From tenant to host", "From host to tenant"]) {
    await page.getByRole("region", { name: side, exact: true }).getByText("Evaluated.", { exact: true }).waitFor();
  }
  await look("studio");
  await focus(page.getByRole("textbox", { name: "Configuration" }));
  await page.keyboard.press("Control+Home");
  await page.keyboard.insertText("sync: {}\n");
  await page.getByRole("list", { name: "Mistakes in: Configuration" }).waitFor();
  await look("studio-mistakes");
  await page.getByRole("button", { name: "Share by link" }).click();
  await page.getByRole("dialog").getByLabel("Link", { exact: true }).waitFor();
  await look("studio-share");
});

Object.assign(stories, seenFocus.stories, ownPages.stories, adminPages.stories);
export const longStories = { ...seenFocus.longStories, ...ownPages.longStories, ...adminPages.longStories };
