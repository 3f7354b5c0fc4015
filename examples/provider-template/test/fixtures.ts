import type { ProviderFixtures } from 'expediter-kit/contract';
import { startAcme } from './start-acme.ts';

/** What the suite knows of Acme. */
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
  refusal: (words) => ({ status: 422, body: { error: { code: 'sold_out', message: words } } }),
  // "Orders": SKUs alone, and a guest without e-mail.
  lacks: ['itemNames', 'email', 'discount', 'total'],
};
