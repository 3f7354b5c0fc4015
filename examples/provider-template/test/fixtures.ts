import type { ProviderFixtures } from 'expediter-kit/contract';
import { startAcme } from './start-acme.ts';

function refusal(code: string, more: object = {}) {
  return { status: 422, body: { error: { code, message: '', ...more } } };
}

/** What the contract suite needs to know about Acme. */
export const fixtures: ProviderFixtures = {
  start: startAcme,
  wrongSettings: {
    storeId: [undefined, '', '1042', 's-1/orders'],
    clientId: [undefined, '', ' padded'],
    clientSecret: [undefined, '', ' padded'],
    webhookSecret: [undefined, '', 'padded '],
    baseUrl: ['api.acme-pos.example', 'ftp://pos.example', 'https://user:word@pos.example'],
    itemMap: [[], { burger: 7 }],
  },
  secretSettings: ['clientSecret', 'webhookSecret'],
  provenSettings: ['clientId', 'clientSecret', 'storeId'],
  statuses: {
    NEW: null,
    ACCEPTED: 'received',
    COOKING: 'in_progress',
    READY: 'ready',
    ON_THE_ROAD: 'en_route',
    HANDED_OVER: 'completed',
    FAULT: 'failed',
    VOIDED: 'cancelled',
  },
  refusal: (words) => refusal('sold_out', { message: words }),
  // "Orders": a line has only an SKU, the guest has no e-mail, and Acme does not check the total.
  lacks: ['itemNames', 'nesting', 'email', 'total'],
  cancels: { answer: 'cancelled', tooLate: 'READY' },
  rejections: {
    'a closed store': { by: refusal('store_closed'), reasonCode: 'closed' },
    'sold out': {
      by: refusal('sold_out', { skus: ['BURG-1', 'beer-pale-ale'] }),
      reasonCode: 'item_unavailable',
      itemIds: ['burger-classic', 'beer-pale-ale'],
    },
    'a wrong field': { by: { ...refusal('bad_order'), status: 400 }, reasonCode: 'technical' },
    'a fault at the till': { by: 'FAULT', reasonCode: 'technical' },
    'a void': { by: 'VOIDED', reasonCode: 'restaurant_cancelled' },
    'a void for a sold-out item': { by: 'VOIDED SOLD_OUT', reasonCode: 'item_unavailable' },
    'a void of a closed store': { by: 'VOIDED CLOSED', reasonCode: 'closed' },
    'a void for lack of time': { by: 'VOIDED NO_TIME', reasonCode: 'too_busy' },
  },
  estimates: { native: 'COOKING', pickup: ['estimatedReadyAt'], delivery: ['estimatedReadyAt'] },
};
