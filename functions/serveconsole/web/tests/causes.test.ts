import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cause } from "../api";
import { sayingsOf, withoutValue } from "../parts/causes";
import { loadTexts } from "../texts";

const sayingOf = (cause: Cause, path: string) => sayingsOf([[cause, path]])[0]!;

test("a message does not repeat the value that is marked", () => {
  for (const [message, expected] of [
    ['Invalid value: "vaule.replace(\\"a\\",\\"b\\")": line 1, column 1: vaule is not defined', "line 1, column 1: vaule is not defined"],
    ["Invalid value: 12: must be a string", "must be a string"], ["Invalid value: unknown field; a patch has path", "unknown field; a patch has path"], ['Duplicate value: "a"', 'Duplicate value: "a"'], ["line 1, column 2: Invalid value", "line 1, column 2: Invalid value"],
  ] as const) assert.equal(withoutValue(message), expected);
});

test("a cause is said in words of people, and nothing that the API alone knows is lost", async () => {
  await loadTexts();
  const subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
  for (const [reason, message, says] of [
    ["AlreadyExists", 'projects.management.platform.sh "shop" already exists', "This name is taken. Choose another name."],
    ["AlreadyExists", 'object is being deleted: projects.management.platform.sh "shop" already exists', "An object with this name is being deleted. Wait until it is gone, or choose another name."],
    ["FieldValueInvalid", `Invalid value: "Not A Name": ${subdomain}`, "Use lowercase letters, digits, hyphens and dots. Begin and end with a letter or a digit."],
    ["FieldValueInvalid", `Invalid value: "No": must be the name of a user: ${subdomain}`, "Use lowercase letters, digits, hyphens and dots. Begin and end with a letter or a digit."],
    ["FieldValueInvalid", 'Invalid value: "a.b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters', "Use lowercase letters, digits and hyphens. Begin and end with a letter or a digit."],
    ["FieldValueInvalid", `Invalid value: "${"a".repeat(64)}": must be no more than 63 characters`, "Use at most 63 characters."],
    ["FieldValueInvalid", "Invalid value: -1: must not be negative", "must not be negative"],
    ["FieldValueInvalid", 'Invalid value: "a*": conditions have no wildcards: use is, isOneOf or hasPrefix', "conditions have no wildcards: use is, isOneOf or hasPrefix"],
    ["FieldValueInvalid", 'Invalid value: "x": a valid config key must consist of alphanumeric characters (e.g. \'key.name\',  or \'KEY_NAME\', regex used for validation is \'[-._a-zA-Z0-9]+\')', "a valid config key must consist of alphanumeric characters"],
    ["FieldValueInvalid", "Invalid value: must be PEM", "must be PEM"],
    ["FieldValueTypeInvalid", "Invalid value: is a string, must be a bool", "is a string, must be a bool"],
    ["FieldValueRequired", "Required value", "Fill in this field."], ["FieldValueRequired", "Required value: set user or team", "set user or team"],
    ["FieldValueNotSupported", 'Unsupported value: "x": supported values: "use", "update", "*"', "Use use, update or *."],
    ["FieldValueNotSupported", 'Unsupported value: "x": supported values: "admin"', "Use admin."],
    ["FieldValueNotSupported", "Unsupported value: unknown field", "There is no such field."], ["FieldValueDuplicate", "Duplicate value: duplicate field", "This field is there twice."],
    ["FieldValueDuplicate", 'Duplicate value: "ana"', "This is there twice."],
    ["FieldValueTooLong", "Too long: may not be more than 256 bytes", "Use at most 256 bytes. A letter from a to z takes one byte."],
    ["FieldValueTooMany", "Too many: 65: must have at most 64 items", "Use at most 64 entries."],
    ["FieldValueForbidden", "Forbidden", "You may not set this."], ["FieldValueForbidden", 'Forbidden: you are not in the group "qa"', 'you are not in the group "qa"'],
    [undefined, "the link has more than 256 bytes here", "the link has more than 256 bytes here"], ["FieldValueSomethingNew", "Something new: 7", "Something new: 7"],
  ] as const) assert.equal(sayingOf({ field: "spec.a", reason, message }, "spec.a").says, says);
});

test("below a field, the cause says where: the value in a list, or the path", () => {
  const cause = { reason: "FieldValueDuplicate", message: 'Duplicate value: "a\\"b"' };
  assert.deepEqual(sayingOf({ ...cause, field: "spec.users[1]" }, "spec.users"), { below: "", says: 'a"b: This is there twice.' });
  assert.deepEqual(sayingOf({ ...cause, field: "spec.scope.roles[0].role" }, "spec.scope"), { below: "roles[0].role", says: "This is there twice." });
  assert.deepEqual(sayingOf({ ...cause, field: "spec.users[1]" }, "spec.users[1]"), { below: "", says: "This is there twice." });
});

test("two rules that a name breaks are said once, by the stricter one", () => {
  const invalid = (message: string): [Cause, string] => [{ field: "metadata.name", reason: "FieldValueInvalid", message: `Invalid value: "No": ${message}` }, "metadata.name"];
  const [subdomain, label, reserved] = [invalid("a lowercase RFC 1123 subdomain must consist of letters"), invalid("a lowercase RFC 1123 label must consist of letters"), invalid("is reserved")];
  assert.deepEqual(sayingsOf([subdomain, label, label, reserved]).map(({ says }) => says), ["Use lowercase letters, digits and hyphens. Begin and end with a letter or a digit.", "is reserved"]);
});
