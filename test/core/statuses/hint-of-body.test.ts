import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { verifyAndTranslate } from '../../../src/core/statuses/translate-webhook-request.ts';
import { registry } from '../../../src/providers/index.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';

const JSON_TEXT = JSON.stringify({ eventType: 'order.status', order: { id: 'o-1', status: 'READY' } });
const utf16 = Buffer.from(JSON_TEXT, 'utf16le');

it.each<[string, Buffer, string]>([
  ['compressed', gzipSync(JSON_TEXT), 'compressed by gzip: send it as it is'],
  ['in UTF-16 with a mark', Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]), 'UTF-16: send UTF-8'],
  ['in UTF-16 without a mark', utf16, 'UTF-16: send UTF-8'],
  ['in UTF-16 with the other byte order', Buffer.from(utf16).swap16(), 'UTF-16: send UTF-8'],
])('a body that is %s is dropped with a reason that says what to send', (_what, body, cure) => {
  const provider = registry.get('standard') as Provider;
  const ordersUrl = 'https://pos.example.com/orders';
  for (const settings of [
    { ordersUrl, unsigned: true },
    { ordersUrl, secret: `whsec_${Buffer.alloc(24).toString('base64')}` },
  ]) {
    const webhook = { headers: {}, body, url: '/', receivedAt: new Date(), verified: false };
    const { dropped } = verifyAndTranslate(provider, provider.settings.parse(settings), webhook);
    expect(dropped?.reason).toContain(cure);
  }
});
