import type { Provider } from './provider.ts';

/** Kept of every webhook: what kind of request it was, where it went, and ids by which others find it again. */
const OF_ALL = [
  'content-encoding',
  'content-length',
  'content-type',
  'host',
  'idempotency-key',
  'request-id',
  'traceparent',
  'user-agent',
  'x-cloud-trace-context',
  'x-correlation-id',
  'x-request-id',
];
/** Credentials by themselves, whoever reads them. */
export const CREDENTIAL_HEADERS: readonly string[] = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key'];

type About = Pick<Provider, 'webhookAuth' | 'webhookHeaders'>;

const known = new WeakMap<About, ReadonlySet<string>>();

/**
 * Names the headers of a webhook that are stored in clear. A signature is one of them: without its secret it proves
 * nothing of another body. A password never is.
 */
export function keptHeaders(provider: About): ReadonlySet<string> {
  let names = known.get(provider);
  if (names === undefined) {
    const { webhookAuth, webhookHeaders = [] } = provider;
    const set = new Set([...OF_ALL, ...webhookHeaders]);
    if (webhookAuth?.kind === 'signature') set.add(webhookAuth.header);
    if (webhookAuth?.kind === 'password') set.delete(webhookAuth.header);
    for (const name of CREDENTIAL_HEADERS) set.delete(name);
    names = set;
    known.set(provider, names);
  }
  return names;
}
