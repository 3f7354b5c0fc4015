import { isAnswer } from '../domain/classify-error.ts';
import type { Location } from '../locations/locations.ts';
import type { Log } from '../domain/log.ts';

/**
 * A vendor counts as down if this many locations of its integration are silent and none answers. If fewer are silent,
 * we assume that their tills are switched off. Such a location occupies at most its share of the workers.
 */
const SILENT_LOCATIONS = 10;
/** The longest time between two tries of an order. */
export const BACKOFF_MAX_MS = 60_000;

type Called = Pick<Location, 'locationId' | 'integration'>;

/** A location whose last call had no answer. The circuit of its integration is open. */
export type SilentLocation = Called & {
  /** Seconds since that call began. Settings stored after that time have not been tried. */
  silentForS: number;
};

/** Tracks which integrations' POS systems do not answer. It sees only the calls of this process. */
export type CircuitBreaker = {
  /**
   * @param began when the call began, by `performance.now()`
   * @param error the call's error; undefined if it succeeded
   */
  callEnded(location: Called, began: number, error?: unknown): void;
  isOpen(integration: string | null): boolean;
  isSilent(location: { locationId: string; integration: string | null }): boolean;
  silentLocations(): SilentLocation[];
  /** The state of each circuit, by integration. */
  states(): ReadonlyMap<string, 'open' | 'closed'>;
};

type Circuit = {
  state: 'open' | 'closed';
  answeredAt: number;
  /** When the last unanswered call began and ended, by location. */
  silentAt: Map<string, { began: number; ended: number }>;
};

/**
 * Makes one circuit per integration. A circuit opens if calls to many locations get no answer and no other call gets
 * one. It closes at the first answer. While it is open, only silent locations are limited to probes. Libraries
 * (cockatiel, opossum) reject a call when it is made. We need the circuit's state earlier, when we claim orders.
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
    // Forget locations whose last unanswered call ended more than the longest back-off before this call began.
    for (const [each, { ended }] of silentAt) if (began - ended > BACKOFF_MAX_MS) silentAt.delete(each);
    if (silentAt.size < SILENT_LOCATIONS) return;
    circuit.state = 'open';
    log.warn(
      { integration, locations: silentAt.size },
      'circuit open: the POS answers at none of these locations; a few of their orders probe it, the others wait',
    );
  };

  return {
    callEnded(location, began, error) {
      // Forget the location at other integrations, because it may have moved to this one.
      for (const [integration, { silentAt }] of circuits) {
        if (integration !== location.integration) silentAt.delete(location.locationId);
      }
      const hasAnswered = isAnswer(error);
      if (hasAnswered === true) answered(location.integration);
      // A call that began before the last answer proves nothing about the time after that answer.
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
