/** A shop for trials and tests, without a dashboard: `DATABASE_URL=… node dist/start-shop.js`. */
import {
  bootstrap,
  DefaultJobQueuePlugin,
  DefaultLogger,
  dummyPaymentHandler,
  JobQueueService,
  LogLevel,
  type VendureConfig,
} from '@vendure/core';
import { ExpediterPlugin } from './expediter-plugin.js';

const { DATABASE_URL, PORT = '3000', SIGNAL_URL, STATUS_WEBHOOK_SECRET } = process.env;

export const config: VendureConfig = {
  apiOptions: { port: Number(PORT), hostname: '127.0.0.1', adminApiPath: 'admin-api', shopApiPath: 'shop-api' },
  authOptions: {
    tokenMethod: ['bearer', 'api-key'],
    superadminCredentials: { identifier: 'superadmin', password: 'superadmin' },
  },
  dbConnectionOptions: { type: 'postgres', url: DATABASE_URL, synchronize: true, logging: false },
  paymentOptions: { paymentMethodHandlers: [dummyPaymentHandler] },
  customFields: {
    Order: [
      { name: 'wantedAt', type: 'datetime', nullable: true },
      { name: 'note', type: 'text', nullable: true },
    ],
    OrderLine: [{ name: 'note', type: 'text', nullable: true }],
  },
  plugins: [
    DefaultJobQueuePlugin,
    ...(SIGNAL_URL !== undefined && STATUS_WEBHOOK_SECRET !== undefined
      ? [ExpediterPlugin.init({ signalUrl: SIGNAL_URL, statusSecret: STATUS_WEBHOOK_SECRET })]
      : []),
  ],
  logger: new DefaultLogger({ level: LogLevel.Info, timestamp: false }),
};

void bootstrap(config).then(async (app) => {
  await app.get(JobQueueService).start();
  console.log(`Vendure listens at http://127.0.0.1:${PORT}`);
});
