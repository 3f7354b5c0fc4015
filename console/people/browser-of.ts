const BROWSERS = [
  ['Edge', /\bEdg/],
  ['Firefox', /\b(?:Firefox|FxiOS)\//],
  ['Chrome', /\b(?:Chrome|CriOS)\//],
  ['Safari', /\bSafari\//],
] as const;
const SYSTEMS = [
  ['Android', /\bAndroid\b/],
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Windows', /\bWindows\b/],
  ['Mac', /\bMac OS X\b/],
  ['Linux', /\bLinux\b/],
] as const;

/** Names a browser, so that its user recognises it. */
export function browserOf(userAgent: string | null): string {
  if (userAgent === null) return 'A browser';
  const find = (names: readonly (readonly [string, RegExp])[]): string | undefined =>
    names.find(([, sign]) => sign.test(userAgent))?.[0];
  const browser = find(BROWSERS);
  const system = find(SYSTEMS);
  if (browser === undefined) return userAgent.slice(0, 60);
  return system === undefined ? browser : `${browser} on ${system}`;
}
