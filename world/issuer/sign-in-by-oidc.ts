import { OWN_PAGE } from '../system/log-in.ts';
import { sendAsIs, type Door, type OperatorAnswer } from '../system/ask-operator.ts';
import { fromElsewhere } from '../network/from-elsewhere.ts';

/**
 * A browser as far as a sign-in needs one: it keeps cookies by host and path, has an address of its own, and follows
 * nothing by itself.
 */
export type Browser = {
  /** Its cookies, which a test may change, by server and name. */
  cookies: Map<string, Map<string, string>>;
  get(url: string, headers?: Record<string, string>): Promise<OperatorAnswer>;
  post(url: string, form: Record<string, string>, headers?: Record<string, string>): Promise<OperatorAnswer>;
};

/** @param doors what answers at an origin in place of a server that listens there */
export function browse(doors: Readonly<Record<string, Door>> = {}): Browser {
  const cookies = new Map<string, Map<string, string>>();
  const from = fromElsewhere();
  const send = async (method: string, url: string, headers: Record<string, string>, body?: string) => {
    const { origin, host, pathname, search } = new URL(url);
    const kept = cookies.get(origin) ?? new Map<string, string>();
    cookies.set(origin, kept);
    const cookie = [...kept].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await sendAsIs(doors[origin] ?? origin, `${pathname}${search}`, {
      method,
      headers: { host, ...from, ...(cookie !== '' && { cookie }), ...headers },
      body,
    });
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (/max-age=0|expires=thu, 01 jan 1970/i.test(set)) kept.delete(name);
      else kept.set(name, value);
    }
    return answer;
  };
  return {
    cookies,
    get: (url, headers = {}) => send('GET', url, headers),
    post: (url, form, headers = {}) => {
      const isForm = { 'content-type': 'application/x-www-form-urlencoded' };
      return send('POST', url, { ...isForm, ...headers }, new URLSearchParams(form).toString());
    },
  };
}

/** Where an answer sends the browser. */
export function locationOf({ status, headers, text }: OperatorAnswer, from: string): string {
  const location = headers.get('location');
  if (location === null) throw new Error(`answered ${status} ${text}, and not sent elsewhere`);
  return new URL(location, from).href;
}

/**
 * Signs in at the provider of start-oidc-provider.ts, up to the way back.
 * @param query such as `?to=/console/orders`
 * @returns the URL of the callback, which the browser has not opened yet
 */
export async function goToCallback(
  browser: Browser,
  consoleUrl: string,
  login: string,
  query: string = '',
): Promise<string> {
  const start = `${consoleUrl}/console/session/oidc${query}`;
  let at = locationOf(await browser.get(start, OWN_PAGE), start);
  for (let hops = 0; !at.startsWith(`${consoleUrl}/console/session/callback`); hops++) {
    if (hops > 9) throw new Error(`sent in circles: ${at}`);
    const page = await browser.get(at);
    at = locationOf(page.status === 200 ? await browser.post(at, { login }) : page, at);
  }
  return at;
}

/** Signs somebody in. @returns where they were sent, a path, and the `Cookie` of their session */
export async function signInByOidc(
  consoleUrl: string,
  login: string,
  { browser = browse(), query = '' }: { browser?: Browser; query?: string } = {},
): Promise<{ to: string; cookie: string }> {
  const callback = await goToCallback(browser, consoleUrl, login, query);
  const answer = await browser.get(callback, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' });
  const { pathname, search } = new URL(locationOf(answer, callback));
  const [name, value] =
    [...(browser.cookies.get(consoleUrl) ?? [])].find(([each]) => each.endsWith('expediter_session')) ?? [];
  return { to: `${pathname}${search}`, cookie: name === undefined ? '' : `${name}=${value}` };
}
