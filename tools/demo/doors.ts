import type { LiveMessage } from '../../src/core/domain/live-message.ts';

/** How signals come into the service of the demo, and statuses leave it. */
export type Doors = {
  /** Its parts, and where each is, for people. */
  parts: readonly (readonly [part: string, where: string])[];
  /** Says how one's own platform signals orders and reads the statuses, when signals can be sent. */
  howToConnect(): string;
  /** Environment variables for the service. */
  env: Record<string, string>;
  /** The path at which the service takes signals. */
  signalPath: string;
  /** Signals an order. */
  signalOrder(orderId: string): Promise<void>;
  /** Sends signals to this URL from now on: that of the service, or of a gate before it. */
  sendSignalsTo(
    url: string,
    about: { operatorUrl: string; operatorToken: string; announce: (part: string, where: string) => void },
  ): Promise<void>;
  /** Reads the statuses as a member's client. @returns how to stop */
  readStatuses(take: (message: LiveMessage) => void, onError: (error: Error) => void): Promise<() => Promise<void>>;
  stop(): Promise<void>;
};
