/** Whether a URL has a user name or a password. `fetch` refuses such a URL: https://fetch.spec.whatwg.org/#dom-request */
export function hasCredentials(address: string | URL): boolean {
  const url = URL.parse(String(address));
  return url !== null && url.username + url.password !== '';
}
