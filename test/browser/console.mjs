// The stories of the console in a real browser, by page. browser_test.go starts it with the address of a runner, the file of an admin key
// and the path of the browser. It prints one JSON line for each story, and one at the end.
import { writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { request } from "playwright-core";
import { admin, api, browser, debuggers, foreignOrigins, relaunch, violations } from "./driver.mjs";
import * as keys from "./pages/keys.mjs";
import * as keySheet from "./pages/keysheet.mjs";
import * as newKey from "./pages/newkey.mjs";
import * as forms from "./pages/forms.mjs";
import * as foundKey from "./pages/foundkey.mjs";
import * as selection from "./pages/selection.mjs";
import * as clusters from "./pages/clusters.mjs";
import * as tokens from "./pages/tokens.mjs";
import * as home from "./pages/home.mjs";
import * as config from "./pages/config.mjs";
import * as people from "./pages/people.mjs";
import * as projects from "./pages/projects.mjs";
import * as trustrules from "./pages/trustrules.mjs";
import * as audit from "./pages/audit.mjs";
import * as openStudio from "./pages/studio.mjs";
import * as session from "./pages/session.mjs";
import * as signin from "./pages/signin.mjs";
import * as look from "./pages/look.mjs";
import * as permissions from "./pages/permissions.mjs";
import * as accessibility from "./pages/accessibility.mjs";
import * as requests from "./pages/requests.mjs";
import * as search from "./pages/search.mjs";
import * as frame from "./pages/frame.mjs";
import * as jobs from "./pages/jobs.mjs";
import * as hostileText from "./pages/hostiletext.mjs";
import * as sleep from "./pages/sleep.mjs";
import * as pictureFolder from "./pages/pictures.mjs";

/** The last calls of playwright, which writes each of them to stderr. */
const calls = [];
const write = process.stderr.write.bind(process.stderr);
process.stderr.write = (text, ...rest) => {
  calls.splice(0, calls.push(String(text)) - 20);
  return write(text, ...rest);
};
/** What a call returns, if it does so soon. */
const answerSoon = (promise) => Promise.race([promise.catch(String), new Promise((resolve) => { setTimeout(resolve, 5000, "no answer"); })]);
/** What the open pages show. */
async function pageTexts() {
  const pages = browser.contexts().flatMap((context) => context.pages());
  const texts = await Promise.all(pages.map((page) => answerSoon(page.locator("body").innerText({ timeout: 3000 }))));
  return pages.map((page, i) => `${page.url()} shows:\n${texts[i]}`).join("\n");
}
/** How long one story may take, in milliseconds. Some calls of playwright wait without a limit if the browser does not answer. */
const limit = 240_000;
/** The address of a page with a script that does not end: it answers once the script is stopped. Empty if there is none. */
async function stopEndlessScript() {
  for (const page of browser.contexts().flatMap((context) => context.pages())) {
    if (await answerSoon(page.evaluate("1")) === 1) continue;
    // Keys that wait for the page may start the script again.
    for (let left = 5; left > 0 && debuggers.has(page); left--) {
      await answerSoon(debuggers.get(page).send("Runtime.terminateExecution"));
      if (await answerSoon(page.evaluate("1")) === 1) return page.url();
    }
  }
  return "";
}
const pages = [keys, keySheet, newKey, forms, foundKey, selection, clusters, tokens, home, config, people, projects, trustrules, audit, openStudio, session, signin, look, permissions, accessibility, frame, search, jobs, requests, hostileText, sleep, pictureFolder];
/** STORIES=long tells the stories that take long instead of the others. */
const selected = pages.flatMap(({ stories, longStories = {} }) => Object.entries(process.env.STORIES === "long" ? longStories : stories)).filter(([name]) => name.includes(process.env.STORY ?? ""));
/** Takes a story, if none of the programs that share TAKEN has taken it: a file exists for each that is. */
function claimStory(i) {
  try {
    writeFileSync(`${process.env.TAKEN}/${i}`, "", { flag: "wx" });
    return true;
  } catch (failure) {
    if (failure.code !== "EEXIST") throw failure;
    return false;
  }
}
const adminClient = await request.newContext({ ignoreHTTPSErrors: true, extraHTTPHeaders: { Authorization: `Bearer ${admin}` } });
/** The paths of all objects, those that others need last. */
async function listObjects() {
  const resources = ["directclusterendpointtokens", "ownedaccesskeys", "virtualclusterinstances", "trustrules", "projects", "teams", "users"];
  const lists = await Promise.all(resources.map(async (resource) => (await (await adminClient.get(`${api}/${resource}`)).json()).items.map(({ metadata: { namespace, name } }) => (
    `${namespace ? `namespaces/${namespace}/` : ""}${resource}/${name}`
  ))));
  return lists.flat();
}
const initialObjects = new Set(await listObjects());
const readConfiguration = async () => (await adminClient.get(`${api}/config/config`)).json();
const { status: initialConfiguration } = await readConfiguration();
/** Leaves the next story what the first one found: no page, no object that a story has made, and the configuration. A story that fails takes nothing back. */
async function cleanUp() {
  await Promise.all(browser.contexts().map((context) => context.close()));
  const { status, ...configuration } = await readConfiguration();
  if (!isDeepStrictEqual(status, initialConfiguration)) await adminClient.put(`${api}/config/config`, { data: { ...configuration, status: initialConfiguration } });
  for (const path of (await listObjects()).filter((path) => !initialObjects.has(path))) await adminClient.delete(`${api}/${path}`);
}
/** Tells a story, and returns why it failed. Empty if it did not. */
async function runStory(story) {
  let timer;
  const deadline = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it has not ended after ${limit / 1000} s. The last calls of the browser:\n${calls.join("")}`)), limit);
  });
  try {
    await Promise.race([story(), deadline]);
    return "";
  } catch (failure) {
    const page = await stopEndlessScript();
    const reason = page ? `a script of ${page} does not end: ${failure.stack}` : `${failure.stack}\n${await pageTexts()}`;
    // A story that has not ended still uses the browser.
    await relaunch();
    return reason;
  } finally {
    clearTimeout(timer);
  }
}
let count = 0;
for (const [i, [name, story]] of selected.entries()) {
  if (!claimStory(i)) continue;
  count++;
  const line = { story: name };
  const begun = performance.now();
  const failure = await runStory(story);
  if (failure) line.failure = failure;
  await cleanUp();
  line.seconds = Math.round((performance.now() - begun) / 100) / 10;
  console.log(JSON.stringify(line));
}
await browser.close();
console.log(JSON.stringify({ stories: count, violations, foreignOrigins: [...foreignOrigins] }));
process.exit(0);
