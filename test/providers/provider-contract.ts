/**
 * `expediter-kit/contract`: the suite that every provider passes, and parts for the simulator of its POS. See
 * docs/writing-a-provider.md.
 */
export { providerContract } from './contract.ts';
export type { Estimate, ProviderFixtures, Rejection, TicketField } from './contract/provider-fixtures.ts';
export { inMemoryCredentials } from './in-memory-credentials.ts';
export { deliverWebhook, type Delivery } from '../simulators/deliver-webhook.ts';
export { jsonIn } from '../simulators/json-in.ts';
export { sendFault } from '../simulators/send-fault.ts';
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
} from '../simulators/simulator.ts';
export { sampleOrder, type SampleOptions } from '../support/sample-order.ts';
export { readBody, sendJson, serveHttp, type HttpServer } from '../support/serve-http.ts';
