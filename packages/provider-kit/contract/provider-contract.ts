/**
 * `expediter-kit/contract`: the suite that every provider passes, and parts for the simulator of its POS. See
 * docs/writing-a-provider.md.
 */
export { providerContract } from './contract.ts';
export type { Estimate, ProviderFixtures, Rejection, TicketField } from './provider-fixtures.ts';
export { inMemoryCredentials } from './in-memory-credentials.ts';
export { deliverWebhook, type Delivery } from '../../../world/pos/deliver-webhook.ts';
export { jsonIn } from '../../../world/pos/json-in.ts';
export { sendFault } from '../../../world/pos/send-fault.ts';
export type {
  Fault,
  Kitchen,
  SignedWebhook,
  Simulator,
  SimulatorOptions,
  StartSimulator,
  Ticket,
  TicketLine,
  TicketModifier,
} from '../../../world/pos/simulator.ts';
export { sampleOrder, type SampleOptions } from '../../../world/platform/sample-order.ts';
export { readBody, sendJson, serveHttp, type HttpServer } from '../../../world/network/serve-http.ts';
