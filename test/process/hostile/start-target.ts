import { constants, createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { PROBED, memoryOf, type Memory } from '../../support/memory-of.ts';
import { runMain, type MainProcess } from '../../../world/processes/run-main.ts';
import { sendJson, serveHttp } from '../../../world/network/serve-http.ts';
import { startPos, type Pos } from '../../../world/pos/start-pos.ts';
import { AUDIENCE, SERVICE_ACCOUNT, startSystem, type System } from '../../../world/system/start-system.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { issueSignalToken } from '../../../src/core/signals/signal-tokens.ts';
import { SECRET, type Target } from '../../../world/hostile/hostile-input.ts';
import { FOLLOW_ENV } from '../../../world/hostile/follow-inputs.ts';
import { listPos } from './list-pos.ts';

export type RunningTarget = {
  target: Target;
  system: System;
  main: MainProcess;
  port: number;
  /** For orders that go their way through the location `kitchen`. */
  pos: Pos;
  memory(): Promise<Memory>;
  stop(): Promise<void>;
};

/** The service in a process of its own, with locations, tokens and keys for both doors. */
export async function startTarget(): Promise<RunningTarget> {
  const [system, pos] = await Promise.all([startSystem({ processes: 0, providers: [listPos] }), startPos()]);
  const signer = pushTokenSigner(system.pubsub.issuer);
  const { keys } = (await (await fetch(system.pubsub.jwksUrl)).json()) as { keys: object[] };
  const keySet = await serveHttp((_request, response) => sendJson(response, 200, { keys: [...keys, signer.jwk] }));

  await Promise.all([
    system.addLocation('club', { ordersUrl: 'http://127.0.0.1:9/orders' }),
    system.addLocation('signed', { ordersUrl: 'http://127.0.0.1:9/orders', secret: SECRET }),
    system.addLocation('list', {}, 'list'),
    system.addLocation('kitchen', { ordersUrl: pos.ordersUrl }),
  ]);
  const main = await runMain({
    ...system.env,
    ...FOLLOW_ENV,
    LOG_LEVEL: 'trace',
    PUSH_JWKS_URL: `${keySet.url}/jwks`,
    PROVIDER_MODULES: fileURLToPath(new URL('list-pos.ts', import.meta.url)),
    NODE_OPTIONS: `${PROBED} --import=${new URL('./without-share.ts', import.meta.url).href}`,
  });
  system.urls[0] = main.url;
  const tokenOf = async (location: string): Promise<string> =>
    new URL(await system.webhookUrl(location)).searchParams.get('token') ?? '';

  return {
    target: {
      token: await tokenOf('club'),
      signedToken: await tokenOf('signed'),
      listToken: await tokenOf('list'),
      pushToken: signer.sign({}),
      signalToken: (
        await issueSignalToken(system.pool, parseSettingsKeys(system.env['SETTINGS_KEY'] ?? ''), {
          kind: 'plain',
          secrets: [],
        })
      ).token,
      signPushToken: signer.sign,
    },
    system,
    main,
    port: Number(new URL(main.url).port),
    pos,
    memory: () => memoryOf(main),
    async stop() {
      main.child.kill('SIGKILL');
      await main.exited;
      await Promise.all([system.stop(), pos.stop(), keySet.stop()]);
    },
  };
}

const KID = 'hostile';

/** Signs whatever it is asked to, by hand: a library would refuse most of it. */
function pushTokenSigner(issuer: string): { jwk: object; sign: Target['signPushToken'] } {
  const ours = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const anonymous = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const pem = ours.publicKey.export({ type: 'spki', format: 'pem' });

  return {
    jwk: { ...ours.publicKey.export({ format: 'jwk' }), kid: KID, alg: 'RS256', use: 'sig' },
    sign({ claims, header, signer = 'ours' }) {
      const now = Math.floor(Date.now() / 1000);
      const protectedHeader: Record<string, unknown> = { alg: 'RS256', kid: KID, typ: 'JWT', ...header };
      const usual = { iss: issuer, aud: AUDIENCE, email: SERVICE_ACCOUNT, email_verified: true, sub: '1' };
      const payload = { ...usual, iat: now, exp: now + 3600, ...claims };
      const signed = [protectedHeader, payload]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.');
      const alg = typeof protectedHeader['alg'] === 'string' ? protectedHeader['alg'] : 'RS256';
      const bits = /(256|384|512)$/.exec(alg)?.[1] ?? '256';
      if (signer === 'nobody') return `${signed}.`;
      if (signer === 'public') return `${signed}.${createHmac(`sha${bits}`, pem).update(signed).digest('base64url')}`;
      return `${signed}.${rsa((signer === 'ours' ? ours : anonymous).privateKey, alg, bits, signed)}`;
    },
  };
}

function rsa(key: KeyObject, alg: string, bits: string, text: string): string {
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  return sign(`sha${bits}`, Buffer.from(text), { key, ...(alg.startsWith('PS') && pss) }).toString('base64url');
}
