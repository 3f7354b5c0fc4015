import { readConfigOf } from '../config.ts';
import { askHttp, hostOf, kindOf } from './ask-http.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed } = reporterOf('public-url');
const CHECK = 'PUBLIC_URL';
/** Of each door of operators one route, which answers whoever has no token with a realm of ours. */
const OPERATOR_ROUTES = ['/metrics', '/orders', '/docs', '/console/session'];

/**
 * Checks that the service answers at the URL that POS vendors call, and operators' doors do not where they have a port of
 * their own, as seen from this machine, not from theirs.
 */
export async function examinePublicUrl(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { PUBLIC_URL, OPERATOR_PORT } = readConfigOf(env, 'PUBLIC_URL', 'OPERATOR_PORT');
  if (PUBLIC_URL === undefined) {
    return [
      warning(CHECK, 'it is unset, so no POS can be told where to call', 'set it: https://expediter.example.com'),
    ];
  }
  const { protocol, hostname } = new URL(PUBLIC_URL);
  const isPlain = protocol === 'http:' && !['localhost', '127.0.0.1', '[::1]'].includes(hostname);
  const plain = isPlain
    ? [warning(CHECK, 'it is not https, and webhook tokens are part of its URLs', 'put TLS before the service')]
    : [];
  const apart = OPERATOR_PORT === undefined ? [] : [operatorRoutes(PUBLIC_URL)];
  return [...plain, ...(await Promise.all([answering(PUBLIC_URL), ...apart]))];
}

async function operatorRoutes(publicUrl: string): Promise<Finding> {
  const host = hostOf(publicUrl);
  const answers = await Promise.all(OPERATOR_ROUTES.map((path) => askHttp(`${publicUrl}${path}`)));
  const open = OPERATOR_ROUTES.filter((_, nth) => {
    const answer = answers[nth];
    return typeof answer === 'object' && answer.headers.get('www-authenticate')?.includes('realm="expediter"');
  });
  if (open.length === 0) return ok('operator routes', `none at ${host}`);
  return failed(
    'operator routes',
    `${host} answers at ${open.join(', ')}`,
    'let what is public lead to PORT alone, not to OPERATOR_PORT, and start the service with both',
  );
}

async function answering(publicUrl: string): Promise<Finding> {
  const host = hostOf(publicUrl);
  const answer = await askHttp(`${publicUrl}/readyz`);
  const toDo = 'start the service, and look at DNS, the load balancer and its certificate';
  if (typeof answer === 'string') return failed('readyz', `${host}: ${answer}`, toDo);
  const { ready } = (answer.json ?? {}) as { ready?: unknown };
  if (answer.status === 200 && ready === true) return ok('readyz', `${host} is ready`);
  if (answer.status === 503 && ready === false) {
    return warning('readyz', `${host} is starting or stopping`, 'wait, and look at the log of the service');
  }
  return failed('readyz', `${host} answers ${kindOf(answer)}: that is not this service`, toDo);
}
