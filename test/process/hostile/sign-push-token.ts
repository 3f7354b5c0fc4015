import { constants, createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { AUDIENCE, SERVICE_ACCOUNT } from '../../support/start-system.ts';
import type { PushTokenChanges } from './hostile-input.ts';

export type PushTokenSigner = {
  /** The public half, as a key set names it. */
  jwk: object;
  sign(about: PushTokenChanges): string;
};

const KID = 'hostile';

/** Signs whatever it is asked to, by hand: a library would refuse most of it. */
export function pushTokenSigner(issuer: string): PushTokenSigner {
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
      const signed = [protectedHeader, payload].map((part) => encode(JSON.stringify(part))).join('.');
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

function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}
