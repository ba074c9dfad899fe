// What the tests use of node. The console itself runs in browsers, so that its sources see no types of node.
declare module "node:test" {
  interface Context {
    after(end: () => unknown): void;
    mock: { timers: { enable(options: { apis: ("setTimeout" | "setInterval" | "Date")[]; now?: number }): void; tick(milliseconds: number): void; setTime(milliseconds: number): void } };
  }
  export function test(name: string, body: (t: Context) => unknown): Promise<void>;
}
declare module "node:assert/strict" {
  interface Assert {
    (value: unknown, message?: string): asserts value;
    equal(actual: unknown, expected: unknown, message?: string): void;
    deepEqual(actual: unknown, expected: unknown, message?: string): void;
    match(text: string, pattern: RegExp, message?: string): void;
    throws(body: () => unknown, expected: (failure: unknown) => boolean, message?: string): void;
    rejects(body: Promise<unknown>, expected: (failure: unknown) => boolean, message?: string): Promise<void>;
  }
  const assert: Assert;
  export default assert;
}
