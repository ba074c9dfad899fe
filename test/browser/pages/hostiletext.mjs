// Stories of names and texts that people choose: written from the right, with markup, and as long as they may be.
import assert from "node:assert/strict";
import { admin, createAccessKey, openWindow, origin, pictureFolder, pressWithKeyboard, requestAsAdmin, signIn, signOut } from "../driver.mjs";

const arabic = "مفتاح النشر الليلي 3";
const markup = `<img src="x" onerror="globalThis.broken=1"></script><script>globalThis.broken=2</script> &amp; "quotes" 'x'`;
/**
 * Characters that turn the direction of what follows, and one that ends a part of its own. The platform refuses them, and may have stored them before:
 * in answers, they stand in place of plain text.
 */
const turning = "safe\u2069\u202Egnp.exe";
const plain = "safe_gnp.exe";
/** Two names that differ in their last letter. */
const longNames = ["a", "b"].map((end) => `${"x".repeat(62)}${end}`);
const widths = [320, 390, 1280, 2560];

/** Fails if markup has become elements, a script has run, or the page scrolls sideways. */
async function assertHarmless(page, about) {
  const found = await page.evaluate(() => ({
    broken: globalThis.broken, elements: document.querySelectorAll('img[src="x"], main script').length, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    dialogs: [...document.querySelectorAll("dialog[open]")].filter((one) => one.scrollWidth > one.clientWidth).length,
  }));
  assert.deepEqual(found, { broken: undefined, elements: 0, wide: Math.min(0, found.wide), dialogs: 0 }, about);
}

/** Fails unless the last letters of names can be seen wherever the names are. Only the columns after the first may be where a table scrolls to. */
async function assertWholeEnds(page, about, ends) {
  const found = await page.evaluate((ends) => {
    const problems = [], seen = new Set();
    const inside = document.querySelector("dialog[open]") ?? document.body;
    const walker = document.createTreeWalker(inside, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const end = ends.find((one) => node.data.includes(one));
      if (!end || node.parentElement.closest("option, datalist, .hidden, [hidden]") || !node.parentElement.checkVisibility({ visibilityProperty: true })) continue;
      seen.add(end);
      const range = document.createRange();
      const last = node.data.indexOf(end) + end.length;
      range.setStart(node, last - 1);
      range.setEnd(node, last);
      const { left, right, top, bottom } = range.getBoundingClientRect();
      let scrolls = false;
      for (let box = node.parentElement; box; box = box.parentElement) {
        const { overflowX, clipPath } = getComputedStyle(box);
        if (clipPath !== "none") break;
        if (overflowX === "visible" || getComputedStyle(box).display === "inline") continue;
        if (["auto", "scroll"].includes(overflowX) && (box.matches("pre") || (box.matches(".table") && !node.parentElement.closest("tr > :first-child, .pick + th, .what")))) break;
        scrolls ||= ["auto", "scroll"].includes(overflowX);
        const area = box.getBoundingClientRect();
        if (right > area.right + 1 || left < area.left - 1 || (!scrolls && (bottom > area.bottom + 2 || top < area.top - 2))) {
          problems.push(`${node.data.slice(-20)} in ${node.parentElement.outerHTML.slice(0, 120)} is cut by ${box.tagName}.${box.className}`);
        }
      }
    }
    return { problems, seen: [...seen].sort() };
  }, ends);
  assert.deepEqual(found, { problems: [], seen: ends }, about);
}

/** Fails unless the parts of the text of an element stand in this order: each on the right of the one before, or on a line below it. */
async function assertOrder(element, parts) {
  await element.waitFor();
  const places = await element.evaluate((root, parts) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const nodes = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) nodes.push(node);
    let from = 0;
    return parts.map((part) => {
      for (let i = from; i < nodes.length; i++) {
        const start = nodes[i].data.indexOf(part);
        if (start < 0) continue;
        from = i;
        const range = document.createRange();
        range.setStart(nodes[i], start);
        range.setEnd(nodes[i], start + part.length);
        // A line may end inside of a part.
        const { left, right, top, bottom } = range.getClientRects()[0];
        return { left, right, top, bottom };
      }
      throw new Error(`no ${part} in ${root.outerHTML}`);
    });
  }, parts);
  const isAfter = (place, before) => !before || place.left >= before.right - 1 || place.top >= before.bottom - 3;
  assert.ok(places.every((place, i) => isAfter(place, places[i - 1])), `${parts.join(" | ")}: ${JSON.stringify(places)}`);
}

/** Makes users, teams, projects, virtual clusters and keys with such names and texts. */
async function makeObjects(context) {
  const post = async (path, name, spec) => {
    const answer = await requestAsAdmin(context, "POST", path, { metadata: { name }, spec });
    assert.equal(answer.status(), 201, `${path}/${name}: ${await answer.text()}`);
  };
  const texts = { "3-arabic": arabic, "4-markup": markup, "5-turning": plain };
  for (const [name, displayName] of Object.entries(texts)) {
    const description = `${displayName}\n${displayName}`;
    await post("users", name, { displayName });
    await post("teams", name, { displayName, users: [name] });
    await post("projects", name, { displayName, description, owner: { user: name } });
    await post(`namespaces/p-${name}/virtualclusterinstances`, name, { displayName, description, owner: { user: name } });
    await post("ownedaccesskeys", name, { displayName, description, user: name, ttl: 3 * 86_400 });
  }
  for (const name of longNames) {
    await post("users", name, {});
    await post("ownedaccesskeys", name, { user: name, ttl: 3 * 86_400 });
    await post("namespaces/p-shop/virtualclusterinstances", name, { owner: { user: name } });
  }
}

export const stories = {
  async "texts from the right, markup and long names: nothing runs, nothing is cut alike, and neighbours keep their order"() {
    const { context, page, problems } = await openWindow({ reducedMotion: "reduce" });
    await makeObjects(context);
    const ends = longNames.map((name) => name.slice(-12));
    const asked = [];
    page.on("request", (request) => { if (/\/x$/.test(request.url())) asked.push(request.url()); });
    // Some texts were stored before the platform refused them.
    await page.route(/\/apis\/management.*\?(?!.*watch=)/, async (route) => {
      if (route.request().method() !== "GET") return route.fallback();
      const response = await route.fetch({ headers: { accept: route.request().headers().accept, authorization: `Bearer ${admin}` } });
      return route.fulfill({ response, body: (await response.text()).replaceAll(plain, turning) });
    });
    // One key was not used for a hundred days: its line on Home goes on with a number.
    await page.route(/ownedaccesskeys\?(?!.*watch=)/, async (route) => {
      if (route.request().method() !== "GET") return route.fallback();
      const response = await route.fetch({ headers: { accept: route.request().headers().accept, authorization: `Bearer ${admin}` } });
      const table = JSON.parse((await response.text()).replaceAll(plain, turning));
      for (const { object } of table.rows ?? []) {
        if (object.metadata.name === "3-arabic" && object.status) Object.assign(object.status, { lastActivity: new Date(Date.now() - 100 * 86_400_000).toISOString(), expirationTimestamp: undefined });
      }
      return route.fulfill({ response, json: table });
    });
    await signIn(page);
    const dialog = page.getByRole("dialog");
    const lookAtWidths = async (about, parts = ends) => {
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 });
        await assertHarmless(page, `${about} at ${width}`);
        await assertWholeEnds(page, `${about} at ${width}`, parts);
        if (pictureFolder) await page.screenshot({ path: `${pictureFolder}/hostile-${about.replaceAll(" ", "-")}-${width}.png` });
      }
      await page.setViewportSize({ width: 1200, height: 800 });
    };
    const open = async (path, ready) => {
      await page.goto(`${origin}/console/${path}`);
      await ready.first().waitFor();
    };
    // Lists.
    await open("keys", page.getByRole("link", { name: `Open ${longNames[1]}` }));
    await lookAtWidths("keys");
    await open("clusters", page.getByRole("link", { name: `Open ${longNames[1]}` }));
    await lookAtWidths("clusters");
    await open("people", page.getByRole("link", { name: `Open ${longNames[1]}` }));
    await lookAtWidths("people");
    await open("projects", page.getByRole("link", { name: "Open 4-markup" }));
    await page.getByText(markup, { exact: true }).waitFor();
    await lookAtWidths("projects", []);
    // A display name stands where the others do, whatever its direction is.
    const starts = await page.locator("tbody .second:not(.phone)").evaluateAll((all) => all.map((one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      return Math.round(range.getBoundingClientRect().left);
    }));
    assert.deepEqual(new Set(starts).size, 1, `${starts}`);
    // Sheets, with the mouse and with the keyboard.
    await open(`keys?name=${longNames[0]}`, dialog.getByRole("button", { name: "Delete" }));
    await lookAtWidths("sheet", [ends[0]]);
    await pressWithKeyboard(page, dialog.getByRole("button", { name: "Delete" }));
    await dialog.getByText("to delete it").waitFor();
    await lookAtWidths("delete", [ends[0]]);
    await open("keys?name=3-arabic", dialog.getByText(arabic, { exact: true }));
    await assertOrder(dialog.locator("dl"), ["Display name", "مفتاح"]);
    await lookAtWidths("arabic sheet", []);
    await open("projects?name=4-markup", dialog.getByText(markup, { exact: true }).first());
    await lookAtWidths("markup sheet", []);
    await open("clusters?name=p-3-arabic/3-arabic&tab=whocan", dialog.getByRole("figure"));
    await assertOrder(dialog.locator(".comers .owner").filter({ hasText: "مفتاح" }).first(), ["مفتاح", "3-arabic"]);
    await lookAtWidths("who can", []);
    // Home.
    await open("home", page.getByRole("heading", { name: "Access keys unused for 90 days" }));
    await page.getByRole("link", { name: longNames[1] }).first().waitFor();
    const unused = page.locator(".rows small").filter({ hasText: "مفتاح" }).first();
    await assertOrder(unused, ["مفتاح", "·", "100", "days"]);
    await assertOrder(page.locator(".rows small").filter({ hasText: "gnp" }).first(), ["safe", "gnp.exe", "·", "in 3 days"]);
    // A long name leaves room for what stands beside it.
    const states = await page.locator(".rows li > .quiet").filter({ hasText: "No endpoint yet" }).evaluateAll((all) => all.map((one) => one.getClientRects().length > 0 && one.offsetHeight < 40));
    assert.ok(states.length > 0 && states.every(Boolean), "a state is broken into letters");
    await lookAtWidths("home");
    // The search.
    await page.keyboard.press("/");
    await dialog.getByRole("combobox").waitFor();
    await page.keyboard.type("xxxx");
    await dialog.getByRole("option", { name: longNames[1] }).first().waitFor();
    await lookAtWidths("search");
    for (const [query, name, parts] of [["الليلي", "3-arabic", ["3-arabic", "مفتاح"]], ["onerror", "4-markup", ["4-markup", "<img"]], ["gnp", "5-turning", ["5-turning", "safe"]]]) {
      await dialog.getByRole("combobox").fill(query);
      const result = dialog.getByRole("option").filter({ hasText: name });
      await result.first().waitFor();
      await assertOrder(result.first(), parts);
      await assertHarmless(page, query);
    }
    await lookAtWidths("search turning", []);
    // The lists of the form for a new key.
    await open("keys?new&user=3", dialog.getByRole("button", { name: "Create key" }));
    const owner = dialog.getByLabel("Name of the team or user");
    await owner.focus();
    await page.locator("datalist option").first().waitFor({ state: "attached" });
    const offered = await page.locator("datalist option").evaluateAll((all) => all.map(({ value, label }) => [value, label]));
    for (const [name, label] of [["3-arabic", arabic], ["4-markup", markup], ["5-turning", turning], ...longNames.map((name) => [name, ""])]) {
      assert.deepEqual(offered.find(([value]) => value === name), [name, label]);
    }
    await lookAtWidths("new key", []);
    await page.keyboard.press("Escape");
    // The person.
    for (const name of ["3-arabic", "4-markup", longNames[0]]) {
      const key = await createAccessKey(context, `session-${name.slice(0, 9)}`, { user: name });
      await signOut(page);
      await signIn(page, key, "/console/home", page.getByRole("heading", { level: 1, name: "Hello" }));
      await page.locator("button.person").click();
      await page.locator("#person").getByRole("button", { name: "Sign out" }).waitFor();
      await lookAtWidths(`person ${name.slice(0, 9)}`, []);
      if (name === longNames[0]) await page.locator("#person .whole").getByText(name).waitFor();
      await page.keyboard.press("Escape");
    }
    assert.deepEqual([asked, problems], [[], []]);
    await context.close();
  },
};
