// Stories of the patch studio. With MEASURE, how long typing takes in it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { constants, deflateRawSync } from "node:zlib";
import {
  admin, createUserWithKey, waitForText, saveDownload, exportFolder, focus, pressWithKeyboard, requestAsAdmin, studioLink, recordFigure, openWindow, openOrigin, origin, allowedOrigins, savedText, signIn, openStudio, tabTo,
  editorText, typeFast, signInWithKeyboard,
} from "../driver.mjs";

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: default, annotations: {team: a}}\nspec:\n  containers:\n  - {name: web, image: docker.io/nginx, env: [{name: DB, value: db.shop.svc}]}\n  imagePullSecrets: [{name: registry}]\n";
const ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, namespace: default, annotations: {cert-manager.io/issuer: letsencrypt}}\nspec:\n  rules: [{host: shop.example.com}]\n  tls: [{secretName: shop-tls, hosts: [shop.example.com]}]\n";
const certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web, namespace: default}\nspec: {secretName: web-tls, dnsNames: [Shop.example.com], issuerRef: {name: le}}\n";
const patch = (path, expression, reverseExpression = "") => `- path: ${path}\n  expression: ${expression}\n${reverseExpression && `  reverseExpression: ${reverseExpression}\n`}`;
const reference = (path) => `- path: ${path}\n  reference: {apiVersion: v1, kind: Secret}\n`;
const forResource = (resource) => `sync:\n  toHost:\n    ${resource}:\n      patches:\n      - path: spec.rules[*].host\n        expression: value\n`;
/** Tasks that patches solve, and what is shown then: the changes, and what the way back loses. */
const works = [
  ["the registry of an image", patch("spec.containers[*].image", 'value.replace("docker.io/", "registry.internal/")', 'value.replace("registry.internal/", "docker.io/")'), pod, ["image: registry.internal/nginx", "Round trip: lossless"]],
  ["the host of an ingress", patch("spec.rules[*].host", 'value.replace("example.com", "apps.internal")'), ingress, ["host: shop.apps.internal", "spec.rules.0.host"]],
  ["the Secret of an ingress", reference("spec.tls[*].secretName"), ingress, ["secretName: v3kaoo70lby0gt"]],
  ["an annotation whose key is quoted", patch('metadata.annotations["cert-manager.io/issuer"]', 'value + "-host"'), ingress, ["cert-manager.io/issuer: letsencrypt-host"]],
  ["a storage class", patch("spec.storageClassName", "'value === \"fast\" ? \"gp3\" : value'"), "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: fast}\n", ["storageClassName: gp3"]],
  ["a DNS name in the environment", patch("spec.containers[*].env[*].value", "virtualToHostDNS(value)"), pod, ["db-x-shop-x-my-vcluster.my-vcluster-ns.svc.cluster.local"]],
  ["the selector of a Service", "- path: spec.selector\n  labels: {}\n", "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {selector: {app: web}}\n", ["platform.sh/managed-by: my-vcluster"]],
  ["a secret of the image registry", reference("spec.imagePullSecrets[*].name"), pod, ["name: vreo9fs5f8hjct"]],
  ["the labels of a ServiceMonitor", "- path: spec.selector.matchLabels\n  labels: {}\n", "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: web, namespace: default}\nspec: {selector: {matchLabels: {app: web, release: r1}}}\n", ["platform.sh/managed-by: my-vcluster"]],
  ["a Certificate, by two patches", patch("spec.dnsNames[*]", "value.toLowerCase()") + reference("spec.secretName"), certificate, ["shop.example.com", "secretName: v3b8uckfc3n7r3", "spec.dnsNames.0"]],
];
/** Patches that match nothing, and what to write instead. */
const doesNothing = [
  ["a key with dots without quotes", patch("metadata.annotations.cert-manager.io/issuer", "value"), ingress, 'quote a key with dots: metadata.annotations["cert-manager.io/issuer"]', 1],
  ["a field that is added", patch("spec.ingressClassName", `'"nginx"'`), ingress, 'no field "ingressClassName"; to add the field, patch its parent: spec', 1],
  ["labels that are absent", patch("metadata.labels.team", `'"shop"'`), pod, 'no field "labels"; to add the field, patch its parent: metadata', 1],
  ["tolerations that are absent", patch("spec.tolerations[*].key", "value"), pod, 'no field "tolerations"; to add the field, patch its parent: spec', 1],
  ["a JSON pointer", patch("/spec/containers/0/image", "value"), pod, "paths have dots: spec.containers[0].image", 1],
  ["patches of another kind", forResource("ingresses"), pod, 'the patches are for ingresses, and the object is of kind "Pod"', 5],
];
/** Mistakes in a configuration, and what is said of them. */
const image = "spec.containers[*].image";
const mistaken = [
  ["a name with a typo", patch(image, 'vaule.replace("a", "b")'), "vaule is not defined; use value", 2],
  ["a syntax error", patch(image, 'value.replace("a", "b"'), "the expression ends too early", 2],
  ["a statement", patch(image, "return value"), "expected one expression, statements are not supported", 2],
  ["a key with a typo", `- path: ${image}\n  expresion: value\n`, "unknown field", 2],
  ["wrong indentation", `sync:\n  toHost:\n    pods:\n    patches:\n    - path: ${image}\n      expression: value\n`, "in no list of patches, such as sync.toHost.pods.patches", 5],
  ["patches in both directions", `${forResource("pods")}  fromHost:\n    configMaps:\n      enabled: true\n      patches:\n      - path: data.a\n        expresion: value\n`, "fromHost.configMaps: 0.expresion: unknown field", 12],
  ["a resource in the singular", forResource("pod"), "supported values", 4],
  ["the form of an earlier version", `- op: replace\n  path: ${image}\n  value: x\n`, "unknown field", 1],
  ["an unknown method", patch(image, 'value.replaceEverything("a", "b")'), "Object has no member 'replaceEverything'", 2],
  ["context.vcluster without its naming", patch(image, "value + context.vcluster.name"), "use context.tenant", 2],
];

export const stories = {
  async "the studio shows both directions, the trace, the proofs and the references"() {
    const { context, page, problems, editor, forward, back, evaluated, type } = await openStudio();
    await evaluated();
    await evaluated(back);
    await forward.getByText("+   - image: registry.internal/nginx").waitFor();
    await forward.getByText("Round trip: lossless").waitFor();
    await forward.getByText("Fix point: stable").waitFor();
    await forward.getByText("v1 Secret default/my-secret").waitFor();
    await forward.getByText('spec has no field "nodeSelectors"').first().waitFor();
    await forward.getByText("The object after patch 0").click();
    await forward.getByRole("region", { name: "The object after patch 0" }).getByText("secretName: my-secret").waitFor();
    await back.getByText("+   - image: docker.io/nginx").waitFor();
    await back.getByText("secretName: my-secret").first().waitFor();
    // What is typed is evaluated after a pause, once.
    const asked = [];
    page.on("request", (request) => { if (request.url().includes("syncpatchevaluations")) asked.push(request.postDataJSON()); });
    await type("Object in the tenant cluster", "kind: Pod\napiVersion: v1\nspec:\n  containers:\n  - image: docker.io/redis\n    ports: [{containerPort: 9007199254740993}]\n  volumes:\n  - {name: m, configMap: {defaultMode: 0644}}\n");
    await forward.getByText("registry.internal/redis").first().waitFor();
    // Numbers are those that Kubernetes reads, and none is rounded.
    await forward.getByText("containerPort: 9007199254740993").waitFor();
    await forward.getByText("defaultMode: 420").waitFor();
    // Another host object than the result: the way back loses it.
    await page.getByRole("button", { name: "Use the result as the object on the host" }).click();
    await back.getByText("docker.io/redis").first().waitFor();
    assert.ok(asked.length <= 4, `${asked.length} evaluations`);
    await type("Configuration", "- path: spec.a\n  expression: value.toUpperCase()\n  reverseExpression: value.toLowerCase()\n");
    await type("Object in the tenant cluster", "spec: {a: Word}\n");
    await forward.getByText("Round trip: values are lost.").waitFor();
    // The tab key leaves the editor.
    await focus(editor("Configuration"));
    await page.keyboard.press("Tab");
    assert.ok(!(await editor("Configuration").evaluate((element) => element.getRootNode().activeElement === element)));
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "mistakes are shown at their places, and the last good result stays"() {
    const { context, page, problems, forward, evaluated, type } = await openStudio();
    await evaluated();
    const found = page.getByRole("list", { name: "Mistakes in: Configuration" });
    await type("Configuration", "sync:\n  toHost:\n    pods:\n      patches:\n      - path: spec.a\n        expression: value + require(1)\n      - path: spec[\n        expression: value\n");
    await found.getByRole("button", { name: "Line 6" }).waitFor();
    await found.getByText("require is not defined").waitFor();
    await found.getByRole("button", { name: "Line 7" }).waitFor();
    await forward.getByText("This is the last result.").waitFor();
    await forward.getByText("registry.internal/nginx").first().waitFor();
    assert.ok(await page.getByRole("button", { name: "Export patches_test.yaml" }).isDisabled());
    await found.getByRole("button", { name: "Line 6" }).click();
    await page.keyboard.insertText("x");
    await type("Configuration", "sync:\n  toHost: {pods: [\n");
    await found.getByRole("button", { name: /Line \d/ }).first().waitFor();
    // An expression that fails is no mistake of the request: its place is known too.
    await type("Configuration", "- path: spec.containers[*].image\n  expression: value.absent.field\n");
    await found.getByRole("button", { name: "Line 2" }).waitFor();
    await forward.getByText("A patch failed.").waitFor();
    await type("Configuration", "sync: {}\n");
    await found.getByText("There are no patches").waitFor();
    await type("Object in the tenant cluster", "a: &a [1,2,3,4,5,6,7,8,9]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n");
    await page.getByRole("list", { name: "Mistakes in: Object in the tenant cluster" }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "patches that do nothing are counted, marked at their paths, and have advice"() {
    const { context, page, problems, forward, evaluated, type } = await openStudio();
    await evaluated();
    await forward.getByText("1 of 3 patches did nothing.").waitFor();
    const found = page.getByRole("list", { name: "Mistakes in: Configuration" });
    await type("Object in the tenant cluster", "kind: Pod\nmetadata: {annotations: {}}\nspec: {containers: [{image: docker.io/nginx}]}\n");
    await type("Configuration", "- path: /spec/containers/0/image\n  expression: value\n- path: metadata.annotations.example.com/a\n  expression: value\n");
    await forward.getByText("2 of 2 patches did nothing.").waitFor();
    await found.getByRole("button", { name: "Line 1" }).waitFor();
    await found.getByText("paths have dots: spec.containers[0].image").waitFor();
    await found.getByRole("button", { name: "Line 3" }).waitFor();
    await found.getByText('quote a key with dots: metadata.annotations["example.com/a"]').waitFor();
    assert.equal(await forward.locator(".proofs li.passed").count(), 0, "nothing is proven");
    await type("Configuration", "sync:\n  toHost:\n    ingresses:\n      enabled: true\n      patches:\n      - path: spec.rules\n        expression: value\n");
    await found.getByText('the patches are for ingresses, and the object is of kind "Pod"').waitFor();
    await type("Configuration", "- path: spec.containers[0].image\n  expression: context.vcluster.name\n");
    await found.getByText("use context.tenant").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "names are completed and explained, and what an example replaces can be brought back"() {
    const { context, page, problems, editor, evaluated, type } = await openStudio();
    await evaluated();
    await type("Configuration", "- path: spec.a\n  expression: ");
    await focus(editor("Configuration"));
    await page.keyboard.press("Control+End");
    await page.keyboard.type("context.tenant.na");
    const offered = page.getByRole("option", { name: /context\.tenant\.namespace/ });
    await offered.waitFor();
    assert.match(await offered.textContent(), /my-vcluster-ns/, "the value is shown");
    // The enter key writes a new line until something is chosen.
    // Just after they appear, the offers take no key: somebody who types would choose one without seeing it.
    const chosen = page.locator('[role="option"][aria-selected="true"]');
    do await page.keyboard.press("ArrowDown"); while ((await chosen.count()) === 0);
    await page.keyboard.press("Enter");
    await offered.waitFor({ state: "hidden" });
    await editor("Configuration").locator("span").filter({ hasText: /^name$/ }).hover();
    await page.locator(".cm-help").getByText("context.tenant.name").waitFor();
    await page.getByText("What expressions can use").click();
    await page.getByText("virtualToHostDNS(service)").first().waitFor();
    // The keys of the browser's own search find in the editor.
    await focus(editor("Configuration"));
    await page.keyboard.press("Control+f");
    await page.getByRole("textbox", { name: "Find" }).fill("spec");
    await page.keyboard.press("Escape");
    const chooser = page.getByRole("combobox", { name: "Example" });
    await chooser.selectOption((await chooser.locator("option").allTextContents())[2]);
    await evaluated();
    await page.getByRole("button", { name: "Bring them back" }).click();
    await editor("Configuration").getByText("path: spec.a").waitFor();
    assert.equal(await page.getByRole("button", { name: "Bring them back" }).count(), 0);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "twenty-five tasks: what works is shown, and what does not says why, at its line"() {
    const { context, page, problems, editor, forward, evaluated, type } = await openStudio();
    await evaluated();
    const found = page.getByRole("list", { name: "Mistakes in: Configuration" });
    // The object on the host of the example is another kind of object, about which each patch would have a mistake of its own.
    await focus(editor("Object on the host"));
    await page.keyboard.press("Control+a");
    await page.keyboard.press("Delete");
    let last = "";
    const evaluate = async (configuration, object) => {
      if (object !== last) await type("Object in the tenant cluster", object);
      last = object;
      await type("Configuration", configuration);
    };
    for (const [task, configuration, object, says] of works) {
      await evaluate(configuration, object);
      for (const text of says) await forward.locator(".changes .added, .proofs").getByText(text).first().waitFor().catch((failure) => assert.fail(`${task}: ${failure.message}`));
      await found.waitFor({ state: "detached" });
      assert.equal(await forward.getByText("did nothing").count(), 0, task);
    }
    for (const [task, configuration, object, says, line] of doesNothing) {
      await evaluate(configuration, object);
      await found.getByRole("listitem").filter({ hasText: says }).getByRole("button", { name: `Line ${line}`, exact: true }).waitFor().catch((failure) => assert.fail(`${task}: ${failure.message}`));
      await forward.getByText("1 of 1 patches did nothing.").waitFor();
    }
    for (const [task, configuration, says, line] of mistaken) {
      await evaluate(configuration, pod);
      await found.getByRole("listitem").filter({ hasText: says }).getByRole("button", { name: `Line ${line}`, exact: true }).waitFor().catch((failure) => assert.fail(`${task}: ${failure.message}`));
      assert.doesNotMatch(await found.textContent(), /Invalid value|\.expression\b/, task);
    }
    // The line leads into the editor, with the keyboard as well.
    await pressWithKeyboard(page, found.getByRole("button").first());
    await editor("Configuration").evaluate(async (it) => { while (it.getRootNode().activeElement !== it) await new Promise(requestAnimationFrame); });
    // From right to left, code is still written from the left.
    await page.evaluate(() => { document.documentElement.dir = "rtl"; });
    for (const code of [editor("Configuration"), forward.locator("pre").first()]) assert.equal(await code.evaluate((one) => getComputedStyle(one).direction), "ltr");
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "each example loads, and its test file is exported"() {
    const { context, page, problems, forward, back, evaluated } = await openStudio();
    const chooser = page.getByRole("combobox", { name: "Example" });
    const titles = (await chooser.locator("option").allTextContents()).slice(1);
    assert.ok(titles.length >= 12, `${titles.length} examples`);
    for (const [i, title] of titles.entries()) {
      await chooser.selectOption(title);
      await evaluated();
      await evaluated(back);
      assert.equal(await page.locator(".findings li.error").count(), 0, title);
      assert.equal(await forward.getByRole("alert").count(), 0, title);
      const saved = page.waitForEvent("download");
      await page.getByRole("button", { name: "Export patches_test.yaml" }).click();
      const file = await saved;
      assert.equal(file.suggestedFilename(), "patches_test.yaml");
      await file.saveAs(`${exportFolder}/${i}_test.yaml`);
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "what a page puts into an editor is there at once, and undo takes it back"() {
    const { context, page, problems, editor, evaluated, type } = await openStudio();
    await evaluated();
    const configuration = editor("Configuration");
    const held = savedText(page, "configuration");
    const undoes = async (expected) => {
      await focus(configuration);
      await page.keyboard.press("Control+z");
      await waitForText("undo, shown", () => editorText(configuration), expected);
      await waitForText("undo, held", held, expected);
    };
    const example = await editorText(configuration);
    const choice = page.getByLabel("Example");
    const titles = await choice.locator("option").allTextContents();
    await type("Configuration", "# mine");
    // The same example twice puts it there twice. An undo takes back no more than it.
    for (let i = 0; i < 2; i++) {
      await choice.selectOption(titles[1]);
      assert.equal(await editorText(configuration), example);
      assert.equal(await held(), example);
      await undoes("# mine");
    }
    // A file with the line ends of Windows is shown, and mistakes in it are at their places.
    const work = { configuration: "# a\r\n# b\r\nsync: [\r\n", tenant: "", host: "", resource: "", name: "t", namespace: "n", mode: "Single" };
    await page.getByLabel("Open a file").setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(work)) });
    await waitForText("a file", () => editorText(configuration), "# a\n# b\nsync: [\n");
    await page.getByRole("list", { name: "Mistakes in: Configuration" }).getByRole("button", { name: "Line 4" }).first().waitFor();
    await undoes("# mine");
    // The cursor stays where it is if the text is the same.
    await choice.selectOption(titles[1]);
    await evaluated();
    await focus(configuration);
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("ArrowRight");
    await choice.selectOption(titles[1]);
    await focus(configuration);
    await page.keyboard.insertText("#");
    assert.equal(await editorText(configuration), `${example.slice(0, 1)}#${example.slice(1)}`);
    await page.goto(`${origin}/console/config`);
    await configuration.waitFor();
    const before = await editorText(configuration);
    await focus(configuration);
    await page.keyboard.press("Control+Home");
    await page.keyboard.insertText("platformHost: undone.example.com\n");
    const discard = page.getByRole("button", { name: "Discard the changes" });
    await discard.click();
    assert.equal(await editorText(configuration), before);
    assert.ok(await discard.isDisabled());
    await focus(configuration);
    await page.keyboard.press("Control+z");
    await waitForText("undo of a discard", () => editorText(configuration), `platformHost: undone.example.com\n${before}`);
    await page.getByRole("button", { name: "Review the changes" }).click();
    await page.getByRole("dialog").getByText("+ platformHost: undone.example.com").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a shared link reaches no server, and runs when somebody says so"() {
    const { context, page, problems, evaluated, type } = await openStudio({ permissions: ["clipboard-read", "clipboard-write"] });
    await evaluated();
    await type("Object in the tenant cluster", "# hello\nkind: Secret\nmetadata:\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}\ndata: {password: aHVudGVyMg==}\nstringData: {other: hunter2}\n");
    await page.getByRole("button", { name: "Share by link" }).click();
    const link = page.getByRole("dialog").getByLabel("Link", { exact: true });
    const masked = await link.inputValue();
    await page.getByLabel("Include the data of Secrets").check();
    await link.waitFor();
    await page.waitForFunction((before) => document.querySelector("dialog textarea")?.value !== before, masked);
    const whole = await link.inputValue();
    await page.keyboard.press("Escape");
    for (const [address, secret] of [[masked, false], [whole, true]]) {
      const other = await openWindow();
      const asked = [];
      other.page.on("request", (request) => asked.push(`${request.method()} ${request.url()} ${request.postData() ?? ""}`));
      await signIn(other.page, admin, address.slice(origin.length), other.page.getByRole("button", { name: "Run" }));
      const tenant = other.page.getByRole("textbox", { name: "Object in the tenant cluster" });
      await tenant.getByText("kind: Secret").waitFor();
      assert.equal((await tenant.textContent()).includes("aHVudGVyMg=="), secret);
      assert.equal((await tenant.textContent()).includes("hunter2"), secret);
      await other.page.waitForTimeout(500); // longer than the pause after which the studio evaluates
      assert.equal(asked.filter((one) => one.includes("syncpatchevaluations")).length, 1, "the probe without a session only");
      assert.ok(!asked.some((one) => one.includes(address.split("#")[1])), "a server saw the link");
      await other.page.getByRole("button", { name: "Run" }).click();
      await other.page.getByRole("region", { name: "From tenant to host", exact: true }).getByText("Evaluated.", { exact: true }).waitFor();
      assert.equal(new URL(other.page.url()).hash, "");
      assert.deepEqual(other.problems, []);
      await other.context.close();
    }
    // A text that cannot be read may have Secrets in it.
    await type("Object in the tenant cluster", "kind: Secret\ndata: {a: [\n");
    await page.getByRole("button", { name: "Share by link" }).click();
    await page.getByRole("alert").getByText("Secrets in it cannot be found").waitFor();
    await page.keyboard.press("Escape");
    // A file holds the same, and is held as well.
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as a file" }).click();
    const path = await (await saved).path();
    await page.getByLabel("Open a file").setInputFiles(path);
    await page.getByText("Nothing is evaluated until you press Run").waitFor();
    await page.getByLabel("Open a file").setInputFiles({ name: "x.json", mimeType: "application/json", buffer: Buffer.from("[]") });
    await page.getByRole("alert").getByText("it is damaged").waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "serve --studio needs no sign-in for the studio, and for nothing else"() {
    allowedOrigins.add(openOrigin);
    const { context, page, problems } = await openWindow();
    await page.goto(`${openOrigin}/console/studio`);
    const forward = page.getByRole("region", { name: "From tenant to host", exact: true });
    await forward.getByText("Evaluated.", { exact: true }).waitFor();
    await forward.getByText("Round trip: lossless").waitFor();
    await page.getByRole("link", { name: "Access keys" }).click();
    await page.getByLabel("Access key", { exact: true }).waitFor();
    const keys = await page.evaluate(async () => (await fetch("/apis/management.platform.sh/v1/ownedaccesskeys")).status);
    assert.equal(keys, 401);
    // Another runner asks for a key on the page of the studio too.
    await page.goto(`${origin}/console/studio`);
    await page.getByLabel("Access key", { exact: true }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a hostile link does nothing"() {
    const { context, page, problems } = await openStudio();
    // A gibibyte of blanks, of blocks that a full flush makes independent.
    const block = deflateRawSync(Buffer.alloc(1 << 20, " "), { finishFlush: constants.Z_FULL_FLUSH });
    const bomb = Buffer.concat([...Array(1024).fill(block), deflateRawSync("")]);
    for (const [hash, says] of [
      ["#1!!!", "it is damaged"], [`#1${bomb.toString("base64url")}`, "larger than 1 MB"],
      [`#1${Buffer.from("no deflate").toString("base64url")}`, "it is damaged"], ["#2abc", "another version"],
      [studioLink({}, Buffer.from("{")), "it is damaged"], ["#", "it is damaged"], ["#x", "another version"], [studioLink({ tenant: 1 }), "it is damaged"],
    ]) {
      await page.evaluate((to) => { location.hash = to; }, hash);
      await page.getByRole("alert").getByText(says).waitFor();
    }
    const script = '<img src=x onerror="globalThis.broken=1"><script>globalThis.broken=1</script>';
    await page.evaluate((to) => { location.hash = to; }, studioLink({ configuration: `- path: a\n  expression: value`, tenant: `a: '${script}'`, name: script, resource: script, mode: script }));
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("alert").getByText("spec.namespaceMode").first().waitFor();
    assert.equal(await page.evaluate(() => globalThis.broken), undefined);
    assert.deepEqual(problems, []);
    await context.close();
  },
  async "a tenant admin tries a patch with the keyboard alone"() {
    const { context, page, problems } = await openWindow();
    const editor = (name) => page.getByRole("textbox", { name });
    // She is an admin of a project, and not of the platform.
    const key = await createUserWithKey(context, "patch-ana");
    assert.equal((await requestAsAdmin(context, "POST", "projects", { metadata: { name: "patch-shop" }, spec: { members: [{ kind: "User", name: "patch-ana", role: "admin" }] } })).status(), 201);
    await signInWithKeyboard(page, key, "/console/home", page.getByRole("heading", { name: "Hello, patch-ana" }));
    await pressWithKeyboard(page, page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Patch studio" }));
    await editor("Configuration").waitFor();
    const forward = page.getByRole("region", { name: "From tenant to host", exact: true });
    await tabTo(page, editor("Configuration"));
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText("- path: spec.nodeName\n  expression: '\"by-\" + value'\n- path: spec.absent.field\n  expression: value\n");
    await tabTo(page, editor("Object in the tenant cluster"));
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText("kind: Pod\napiVersion: v1\nspec: {nodeName: keyboard}\n");
    await forward.getByText("by-keyboard").first().waitFor();
    // Why the other one did nothing.
    await forward.getByText('spec has no field "absent"').first().waitFor();
    const save = page.getByRole("button", { name: "Export patches_test.yaml" });
    await tabTo(page, save);
    assert.match(readFileSync(await saveDownload(page, () => page.keyboard.press("Enter")), "utf8"), /by-keyboard/);
    for (const path of ["projects/patch-shop", "ownedaccesskeys/patch-ana-key", "users/patch-ana"]) await requestAsAdmin(context, "DELETE", path);
    assert.deepEqual(problems, []);
    await context.close();
  },
};

/** In each check, a story types in the configuration, which has the same editor. */
export const longStories = {
  async "typing faster than a slow page draws: the editors of the studio"() {
    const { context, page, problems, editor, evaluated } = await openStudio();
    await evaluated();
    for (const [name, field] of [["Configuration", "configuration"], ["Object on the host", "host"]]) {
      await typeFast(page, editor(name), savedText(page, field));
    }
    assert.deepEqual(problems, []);
    await context.close();
  },
};

// How long typing takes in the studio. It is measured where somebody wants to know, and nothing depends on it.
for (const patches of process.env.MEASURE ? [40, 400] : []) {
  stories[`typing in the studio, in a configuration with ${patches} patches`] = async () => {
    const { context, page, editor, evaluated, type } = await openStudio();
    await evaluated();
    // Patches of four lines, as many other settings, and the patch in which somebody types.
    const written = Array.from({ length: patches }, (_, i) => `      - path: metadata.labels["l${i}"]\n        expression: value + "${i}"\n        reverseExpression: value.slice(0, -${String(i).length})\n        # ${i}\n`);
    const otherSettings = Array.from({ length: patches }, (_, i) => `  setting${i}: ${i}\n`);
    const before = `controlPlane:\n${otherSettings.join("")}sync:\n  toHost:\n    pods:\n      patches:\n${written.join("")}`;
    const last = `      - path: spec.nodeName\n        expression: '"" + value'\n`;
    const configuration = before + last;
    const lines = configuration.split("\n").length - 1;
    await type("Configuration", configuration);
    await type("Object in the tenant cluster", "kind: Pod\napiVersion: v1\nmetadata: {labels: {l0: a, l1: b, l39: c}}\nspec: {nodeName: END}\n");
    await evaluated();
    await focus(editor("Configuration"));
    await page.keyboard.press("Control+End");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("End");
    for (let left = 10; left > 0; left--) await page.keyboard.press("ArrowLeft");
    // The time from the key to the frame with the letter, and to the first frame with the result.
    await page.evaluate(() => {
      globalThis.typed = { painted: [], want: "", since: 0, resulted: [] };
      const afterPaint = (what) => requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = what;
        port2.postMessage(0);
      });
      document.addEventListener("keydown", (event) => {
        typed.since = event.timeStamp;
        afterPaint(() => typed.painted.push(performance.now() - event.timeStamp));
      }, { capture: true });
      new MutationObserver(() => {
        if (typed.want === "" || !document.body.textContent.includes(typed.want)) return;
        const { since } = typed;
        typed.want = "";
        afterPaint(() => typed.resulted.push(performance.now() - since));
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    const count = 60;
    let word = "";
    for (let i = 0; i < count; i++) {
      const letter = "abcdefghijklmnopqrstuvwxyz"[i % 26];
      word += letter;
      await page.evaluate((want) => { typed.want = want; }, `${word}END`);
      await page.keyboard.press(letter);
      await page.waitForFunction((i) => typed.resulted.length === i, i + 1);
    }
    const { painted, resulted } = await page.evaluate(() => typed);
    const of = (all) => [0.5, 0.95].map((part) => Math.round([...all].sort((a, b) => a - b)[Math.ceil(part * all.length) - 1]));
    recordFigure(`typing in ${lines} lines, ${count} letters: painted after ${of(painted).join(" (p95 ")} ms), evaluated and shown after ${of(resulted).join(" (p95 ")} ms), with the pause of 300 ms`);
    await context.close();
  };
}
