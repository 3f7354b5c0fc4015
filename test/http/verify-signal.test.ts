/** Each scheme's published test vector, and that only the right bytes pass. */
import { describe, expect, it } from 'vitest';
import { NotAuthentic } from '../../src/core/domain/errors.ts';
import type { SignalKind } from '../../src/core/signals/find-order-id.ts';
import { signalVerifier } from '../../src/http/verify-signal.ts';

const VECTORS: {
  kind: SignalKind;
  source: string;
  secret: string;
  headers: Record<string, string>;
  body: string;
  at?: number;
}[] = [
  {
    kind: 'standard-webhooks',
    // The first test of the reference libraries, such as libraries/javascript/src/index.test.ts
    source: 'https://github.com/standard-webhooks/standard-webhooks',
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    body: '{"test": 2432232314}',
    at: 1_614_265_330_000,
  },
  {
    kind: 'shopify',
    // tests/sql_test_files/data/hmac_shopify_webhook.sql. Shopify's own libraries compute theirs at run time.
    source: 'https://github.com/sqlpage/SQLPage',
    secret: 'test-webhook-secret',
    headers: { 'x-shopify-hmac-sha256': 'QNyObTlKbMx2qDlPF/ZOZcBqg5OgPg+2oky3zldc0Gw=' },
    body: '{"id":1234567890,"email":"customer@example.com","total_price":"123.45"}',
  },
  {
    kind: 'saleor',
    // Signed by `api_jws.encode` of PyJWT 2.15.1 as `jws_encode` calls it: saleor/core/jwt_manager.py. Its own test,
    // saleor/core/tests/test_jwt_manager.py, has the same header, with `b64` in `crit`.
    source: 'https://github.com/saleor/saleor',
    secret: 'https://shop.example.com/.well-known/jwks.json',
    headers: {
      'saleor-signature':
        'eyJhbGciOiJSUzI1NiIsImI2NCI6ZmFsc2UsImNyaXQiOlsiYjY0Il0sImtpZCI6IjEiLCJ0eXAiOiJKV1QifQ..' +
        'Y8u_mrXQVNl5-M0XhJ-asGucwMl2Met_jwzu58cKogTm80s-2VzdRWy2iJULaHkmnVHwxyRfxUe9nNDQWo2i-bOv_qz3Bp2FWoKPL52XJZgLmYH' +
        'JksSFhv7SYfrYklUobRH-DNV-HlXUOBi-BUqDMH1Vq445MrGhnlvc8UVZROmba5o3KC17YcY5e_q3grXd2GAbPGmBM6N8oeMI2qaRkBxqNHF-tM' +
        'r934zG6VZplWL3u8Bpy-h-6hR4Y_XmVT3QVpBGObe1v7TF-xOeT1-szeOaKl-UrvtTyr6UZ4SHIAayZslEi8GTE21O5wLU16ed-z9hUgi9XjKTU' +
        'F3mymIzHQ',
    },
    body: '[{"type": "Order", "id": "T3JkZXI6NjA0ZGZhZTctNWIwNy00MWZm", "metadata": {"note": "Grüße 🍕"}}]',
  },
];

/** The key of the last vector, as Saleor shows it. */
const KEYS = {
  keys: [
    {
      kty: 'RSA',
      key_ops: ['verify'],
      n:
        'ryrVBIXz2hhD_pfwncSucTb4s7ji_X3hSg-hT_BuvLu9Msmqcqum059Qqy_7c8ClXiYVznBO2zGYOiCfe4l9XWXCpe3REDHT3rVwvEIfhZvkmjX' +
        'mEKlFM3woVMJLidUP4_3-6eVQR_LEY8GKRURlYZm1xAV9bghmPR6Meu1R2Y5eIOi08Y0NhpOFhCBRbX54isMokmGjpOxMezU315z7I5L9n2yabd' +
        '2OnGT6EdkGt2ES_lCqoJCu6-9B3CpkgGbdncTkpHfLgN_V_AY6Yvf7oJejNngX06Xf-31qEJWQ2EASQeVWGSMvoLj_CIrdQzFR3oIGClaYZqs1A' +
        'NxONfHAtQ',
      e: 'AQAB',
      use: 'sig',
      kid: '1',
    },
  ],
};

describe.each(VECTORS)('the test vector of $kind ($source)', ({ kind, secret, headers, body, at = 0 }) => {
  const verify = signalVerifier(
    () => new Date(at),
    async (url) => {
      if (url !== 'https://shop.example.com/.well-known/jwks.json') throw new Error('there are no keys');
      return Response.json(KEYS);
    },
  );
  const token = { tokenId: '', kind, secrets: [secret], expiresAt: null };

  it('is verified', async () => {
    await verify(token, { headers, body: Buffer.from(body) });
  });

  it('is not verified if one byte of the body or of the signature changed, or without a secret', async () => {
    const changed = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replace(/[Og](?=[^.]*$)/, 'A')]),
    );
    for (const [other, signed] of [
      [token, { headers, body: Buffer.from(body.replace('2', '3').replace('Order', 'order')) }],
      [token, { headers: changed, body: Buffer.from(body) }],
      [token, { headers: {}, body: Buffer.from(body) }],
      [
        { ...token, secrets: [] },
        { headers, body: Buffer.from(body) },
      ],
    ] as const) {
      await expect(verify(other, signed)).rejects.toThrow(NotAuthentic);
    }
  });
});
