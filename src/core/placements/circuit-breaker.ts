import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import type { Location } from '../locations/locations.ts';
import type { Log } from '../domain/log.ts';

/**
 * Silent locations of an integration, without any that answers, from which the vendor counts as down. Fewer are tills
 * that are switched off, and each of those has at most its location's share of the workers.
 */
const LOCATIONS = 10;
/** The longest time between two tries of an order. */
export const BACKOFF_MAX_MS = 60_000;

type Called = Pick<Location, 'locationId' | 'integration'>;

/** A location whose last call had no answer, while its integration's circuit is open. */
export type SilentLocation = Called & {
  /** Seconds since that call began. Settings put since then have not been tried. */
  silentForS: number;
};

/** The integrations whose POS systems do not answer, as far as this process has called them. */
export type CircuitBreaker = {
  /**
   * @param began when the call began, by `performance.now()`
   * @param error what it threw; undefined if the POS did what it was asked
   */
  callEnded(location: Called, began: number, error?: unknown): void;
  isOpen(integration: string | null): boolean;
  isSilent(location: { locationId: string; integration: string | null }): boolean;
  silentLocations(): SilentLocation[];
  /** Circuits by integration. */
  states(): ReadonlyMap<string, 'open' | 'closed'>;
};

type Circuit = {
  state: 'open' | 'closed';
  answeredAt: number;
  /** When the last unanswered call began and ended, by location. */
  silentAt: Map<string, { began: number; ended: number }>;
};

/**
 * Makes one circuit per integration. It opens if calls to many of its locations go without an answer and none has one,
 * and closes at the first answer. A location that has not failed is not held back. Libraries (cockatiel, opossum)
 * refuse a call that is about to be made; here the queue must know, or orders would be claimed only to be refused.
 */
export function circuitBreaker(log: Log): CircuitBreaker {
  const circuits = new Map<string, Circuit>();

  const circuitOf = (integration: string): Circuit => {
    const circuit = circuits.get(integration) ?? { state: 'closed', answeredAt: -Infinity, silentAt: new Map() };
    circuits.set(integration, circuit);
    return circuit;
  };

  const openCircuit = (integration: string | null): Circuit | undefined => {
    const circuit = circuits.get(integration ?? '');
    return circuit?.state === 'open' ? circuit : undefined;
  };

  const answered = (integration: string): void => {
    const circuit = circuitOf(integration);
    circuit.answeredAt = performance.now();
    circuit.silentAt.clear();
    if (circuit.state === 'closed') return;
    circuit.state = 'closed';
    log.info({ integration }, 'circuit closed: the POS answers again');
  };

  const silent = ({ locationId, integration }: Called, began: number): void => {
    const circuit = circuitOf(integration);
    const { silentAt } = circuit;
    silentAt.set(locationId, { began, ended: performance.now() });
    if (circuit.state === 'open') return;
    // However long calls take: after the longest back-off, another to that location would have begun before this one.
    for (const [each, { ended }] of silentAt) if (began - ended > BACKOFF_MAX_MS) silentAt.delete(each);
    if (silentAt.size < LOCATIONS) return;
    circuit.state = 'open';
    log.warn(
      { integration, locations: silentAt.size },
      'circuit open: the POS answers at none of these locations; their orders wait, and a few at a time try it',
    );
  };

  return {
    callEnded(location, began, error) {
      // The location is served by another integration now.
      for (const [integration, { silentAt }] of circuits) {
        if (integration !== location.integration) silentAt.delete(location.locationId);
      }
      const hasAnswered = isAnswer(error);
      if (hasAnswered === true) answered(location.integration);
      // A call that began before the last answer says nothing about the time after it.
      else if (hasAnswered === false && began > circuitOf(location.integration).answeredAt) silent(location, began);
    },
    isOpen: (integration) => openCircuit(integration) !== undefined,
    isSilent: ({ locationId, integration }) => openCircuit(integration)?.silentAt.has(locationId) ?? false,
    silentLocations() {
      const now = performance.now();
      return [...circuits].flatMap(([integration, { state, silentAt }]) =>
        state === 'closed'
          ? []
          : Array.from(silentAt, ([locationId, { began }]) => ({
              locationId,
              integration,
              silentForS: (now - began) / 1_000,
            })),
      );
    },
    states: () => new Map(Array.from(circuits, ([integration, { state }]) => [integration, state])),
  };
}

/** True if the POS answered; a server error is no answer. Undefined if that is unknown, or nothing was asked. */
function isAnswer(error: unknown): boolean | undefined {
  if (error === undefined) return true;
  const { httpStatus } = (error ?? {}) as { httpStatus?: number };
  if (httpStatus !== undefined) return httpStatus < 500;
  if (error instanceof NeedsOperator || error instanceof GiveUp) return undefined;
  // If we keep to a vendor's limit ourselves, there is a wait and no status.
  if (error instanceof TryAgain && error.retryAfterMs !== undefined) return undefined;
  return false;
}
