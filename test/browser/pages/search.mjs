// Stories of the search over everything.
import assert from "node:assert/strict";
import { admin, assertAccessibleIn, createAccessKey, openWindow, origin, pressWithKeyboard, requestAsAdmin, signIn } from "../driver.mjs";

/** The parts of the search. */
function searchOf(page) {
  const dialog = page.getByRole("dialog", { name: "Search" });
  return { dialog, input: dialog.getByRole("combobox"), option: (name) => dialog.getByRole("option", { name }), state: dialog.getByRole("status") };
}

/** The name of the result that Enter opens, as assistive technologies are told. */
const activeResult = (input) => input.evaluate((it) => document.getElementById(it.getAttribute("aria-activedescendant"))?.textContent ?? "");

export const stories = {
  async "a search finds what the session may list by name, display name and owner, and opens it with the keyboard"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    const post = async (path, name, spec) => assert.equal((await requestAsAdmin(context, "POST", path, { metadata: { name }, spec })).status(), 201, name);
    await post("users", "finder", { displayName: "Fiona Fjord", email: "fiona@example.com" });
    await post("teams", "finders", { users: ["finder"] });
    await post("projects", "finding", { displayName: "Fjord of projects", owner: { team: "finders" } });
    await post("namespaces/p-finding/virtualclusterinstances", "fjordlands", { owner: { user: "finder" } });
    await post("trustrules", "fjord-rule", { issuer: "https://ci.example.com", match: [{ claim: "sub", is: "x" }], owner: { team: "finders" }, scope: {} });
    const findersKey = await createAccessKey(context, "laptop-1", { user: "finder", displayName: "Laptop at the fjord" });
    await createAccessKey(context, "laptop-2", { user: "finder" });
    await post("directclusterendpointtokens", "fjord-token", {});
    await signIn(page);
    const { dialog, input, option, state } = searchOf(page);
    await page.keyboard.press("/");
    await dialog.getByText("The arrow keys choose, Enter opens.").waitFor();
    // Before somebody types, there are the actions and the pages.
    await option("New key").waitFor();
    await option("Patch studio").waitFor();
    await page.keyboard.type("fjord");
    await state.getByText("6 found", { exact: true }).waitFor();
    for (const [group, names] of Object.entries({
      "Virtual clusters": ["p-finding/fjordlandsuser finder"], "Access keys": ["laptop-1 Laptop at the fjorduser finder"], Tokens: ["fjord-token admin user admin"], Projects: ["finding Fjord of projectsteam finders"],
      People: ["finder Fiona Fjord · fiona@example.com"], "Trust rules": ["fjord-rule team finders"],
    })) {
      const found = await dialog.getByRole("group", { name: group }).getByRole("option").evaluateAll((all) => all.map((one) => {
        const copy = one.cloneNode(true);
        for (const initials of copy.querySelectorAll(".initials")) initials.remove();
        return copy.textContent.replace(/\s+/g, "");
      }));
      assert.deepEqual(found, names.map((name) => name.replace(/\s+/g, "")), group);
    }
    await assertAccessibleIn(["light", "dark", "forced colours", "400 %"], page, "search");
    // The arrow keys go round, and what is chosen is told.
    assert.match(await activeResult(input), /fjordlands/);
    await page.keyboard.press("ArrowDown");
    assert.match(await activeResult(input), /laptop-1/);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    assert.match(await activeResult(input), /fjord-rule/);
    await page.keyboard.press("ArrowUp");
    assert.match(await activeResult(input), /Fiona Fjord/);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "finder" }).waitFor();
    assert.equal(page.url(), `${origin}/console/people?name=finder`);
    // An owner finds what they own, from another page and while somebody types, with the other key.
    await page.goto(`${origin}/console/clusters?filter=nothing`);
    await page.getByText("Nothing matches the filter.").waitFor();
    await page.getByRole("searchbox").focus();
    await page.keyboard.press("Control+k");
    await input.waitFor();
    await page.keyboard.type("finder laptop");
    await state.getByText("2 found", { exact: true }).waitFor();
    // What has just the name that was typed comes first, whatever its kind is.
    await input.fill("finder");
    await state.getByText("7 found", { exact: true }).waitFor();
    assert.match(await activeResult(input), /finder Fiona Fjord/);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    // A page and an action have addresses, too.
    await page.locator("body").click({ position: { x: 5, y: 790 } });
    await page.keyboard.press("/");
    await input.waitFor();
    await page.keyboard.type("new team");
    await state.getByText("1 found", { exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "New team" }).waitFor();
    // What a session may not list is not asked for, and what is refused is said.
    await context.clearCookies();
    const refused = [];
    page.on("response", (response) => { if (response.status() === 403) refused.push(response.url()); });
    await signIn(page, findersKey);
    await page.keyboard.press("/");
    await input.waitFor();
    await page.keyboard.type("fjord-");
    await state.getByText("Nothing matches.", { exact: true }).waitFor();
    assert.deepEqual(refused, []);
    await page.route(/\/teams\?/, (route) => route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ kind: "Status", code: 503, message: "not now" }) }));
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await input.waitFor();
    await page.keyboard.type("fjord-");
    await dialog.getByText("Teams could not be read: not now").waitFor();
    await state.getByText("Nothing matches in what could be read.", { exact: true }).waitFor();
    for (const path of ["directclusterendpointtokens/fjord-token", "ownedaccesskeys/laptop-1", "ownedaccesskeys/laptop-2", "trustrules/fjord-rule", "namespaces/p-finding/virtualclusterinstances/fjordlands", "projects/finding", "teams/finders", "users/finder"]) {
      await requestAsAdmin(context, "DELETE", path);
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a search reads all pages of a list before it says that nothing matches, and is in the bar and on a phone"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await signIn(page, admin, "/console/teams", page.getByRole("button", { name: "New team" }));
    const { dialog, input, option, state } = searchOf(page);
    const rows = (from, count) => Array.from({ length: count }, (_, i) => ({ cells: [`many-${from + i}`, "user:ana", ""], object: { metadata: { name: `many-${from + i}`, uid: `${from + i}` } } }));
    let release;
    const held = new Promise((done) => { release = done; });
    const asked = [];
    await page.route(/\/ownedaccesskeys\?/, async (route) => {
      const position = new URL(route.request().url()).searchParams.get("continue");
      asked.push(position);
      if (position) await held;
      await route.fulfill({ contentType: "application/json", body: JSON.stringify({
        kind: "Table", columnDefinitions: ["Name", "Owner", "Display Name"].map((name) => ({ name, description: "", priority: 0 })),
        ...(position ? { metadata: {}, rows: rows(500, 20) } : { metadata: { continue: "next", remainingItemCount: 20 }, rows: rows(0, 500) }),
      }) });
    });
    // The button is in the bar, and what is typed while the script comes is kept.
    let scriptComes;
    const script = new Promise((done) => { scriptComes = done; });
    await page.route("**/assets/search-*.js", async (route) => { await script; await route.continue(); });
    await page.keyboard.press("/");
    await page.keyboard.type("many-51");
    scriptComes();
    await input.waitFor();
    assert.equal(await input.inputValue(), "many-51");
    await state.getByText(/^1 found so far, 5\d\d of 5[2-9]\d read$/).waitFor();
    await option("many-51 ").waitFor();
    await input.fill("many-519");
    await state.getByText(/^0 found so far/).waitFor();
    assert.equal(await dialog.getByText("Nothing matches").count(), 0);
    release();
    await option("many-519").waitFor();
    await state.getByText("1 found", { exact: true }).waitFor();
    await input.fill("many-520");
    await state.getByText("Nothing matches.", { exact: true }).waitFor();
    assert.deepEqual(asked, [null, "next"], "each page is read once");
    // The rest of many is in the list.
    await page.unroute(/\/ownedaccesskeys\?/);
    await input.fill("many-1");
    await option(/^\d+ more, in the list$/).click();
    await page.getByRole("searchbox").waitFor();
    assert.equal(page.url(), `${origin}/console/keys?filter=many-1`);
    // On a phone, with a tap.
    await page.setViewportSize({ width: 390, height: 800 });
    const button = page.getByRole("button", { name: "Search", exact: true });
    assert.ok((await page.getByRole("banner").boundingBox()).height < 90);
    const { width, height } = await button.boundingBox();
    assert.ok(width >= 24 && height >= 24);
    await button.click();
    await input.waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.setViewportSize({ width: 1200, height: 800 });
    await pressWithKeyboard(page, button);
    await input.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    // A script that is gone says so.
    await page.unrouteAll();
    await page.route("**/assets/search-*.js", (route) => route.fulfill({ status: 404, body: "{}" }));
    await page.reload();
    await button.click();
    await dialog.getByText("The console has changed").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual(problems, []);
    await context.close();
  },
};
