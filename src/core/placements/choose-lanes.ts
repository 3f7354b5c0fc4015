import type { SilentLocation } from './circuit-breaker.ts';
import type { Lane } from './due-lanes.ts';

/** The room that there is for placements. */
export type Room = {
  limit: number;
  /** How many of one location may be under way. */
  share: number;
  /** The locations that this process is sending for now, one entry per placement. */
  busy: readonly { locationId: string; integration: string | null }[];
  /** How many fetched ones may be claimed in all. */
  senders: number;
  /** How many of one integration may be under way. */
  sendersOfOne: number;
  /**
   * Integrations with an open circuit: one placement at a time per location, and for all silent locations together only
   * the probes, longest untried first.
   */
  open: readonly { integration: string; probes: number }[];
  /** Locations of open integrations whose last call had no answer. */
  silent: readonly SilentLocation[];
  /** How many more may be claimed that wait for a probe past their deadline. */
  late: number;
  /** How many of those not fetched yet may be claimed, and `newest` so many more. */
  oldest: number;
  newest: number;
};

/** What to claim of a lane: the oldest, the newest, or of the oldest the late alone. */
export type Chosen = { lane: Lane; take: number; newest: number; late: boolean };

/**
 * Chooses what to claim of which lanes, within each location's share and the locations in turn: a hanging POS delays only
 * its own orders, and a vendor that hangs at a hundred locations does not delay others either. Placements not fetched
 * yet, whose location is unknown, have a share of their own, so that a hanging platform does not delay the fetched ones.
 * Some of them are the newest, so that one location's backlog does not delay everybody's next order.
 */
export function chooseLanes(lanes: ReadonlyMap<string, Lane>, room: Room): Chosen[] {
  const chosen = new Map<Lane, Chosen>();
  const busyAt = countBy(room.busy.map((each) => each.locationId));
  const busyOf = countBy(room.busy.map((each) => each.integration));
  const isOpen = new Set<string | null>(room.open.map((each) => each.integration));
  const silent = silentLanes(lanes, room.silent);
  let left = Math.min(room.limit, room.senders);
  const take = (lane: Lane): void => {
    const already = chosen.get(lane);
    if (already === undefined) chosen.set(lane, { lane, take: 1, newest: 0, late: false });
    else already.take += 1;
    left -= 1;
  };

  for (const { integration, probes } of room.open) {
    if (probes === 0) continue;
    const untried = [...silent].filter(([lane]) => lane.integration === integration && !busyAt.has(lane.locationId));
    const longestFirst = untried.toSorted(([, a], [, b]) => b - a).map(([lane]) => lane);
    longestFirst.slice(0, Math.min(probes, left)).forEach(take);
  }
  /** Takes one more of a lane in which fewer than `turn` would be under way. @returns whether it may take another */
  const serve = (lane: Lane, turn: number): boolean => {
    const { locationId, integration } = lane;
    if (locationId === '' || silent.has(lane)) return false;
    const share = isOpen.has(integration) ? 1 : room.share;
    const underWay = (busyAt.get(locationId) ?? 0) + (chosen.get(lane)?.take ?? 0);
    const ofIntegration = busyOf.get(integration) ?? 0;
    // guard: worker-share
    if (underWay >= share || ofIntegration >= room.sendersOfOne) return false;
    if (underWay < turn) {
      take(lane);
      busyOf.set(integration, ofIntegration + 1);
    }
    return true;
  };
  let open: Iterable<Lane> = lanes.values();
  // guard: worker-turns
  for (let turn = 1; turn <= room.share; turn += 1) {
    const next: Lane[] = [];
    for (const lane of open) {
      if (left <= 0) break;
      if (serve(lane, turn)) next.push(lane);
    }
    open = next;
  }

  const late: Chosen[] = [];
  let lateLeft = Math.min(room.late, room.limit);
  for (const lane of silent.keys()) {
    if (lane.late === 0 || lateLeft <= 0) continue;
    late.push({ lane, take: Math.min(lane.late, lateLeft), newest: 0, late: true });
    lateLeft -= lane.late;
  }
  const unfetched = lanes.get('');
  const fetches = unfetched !== undefined && room.oldest + room.newest > 0;
  return [
    ...chosen.values(),
    ...late,
    ...(fetches ? [{ lane: unfetched, take: room.oldest, newest: room.newest, late: false }] : []),
  ];
}

/**
 * The lanes of silent locations, with the seconds of their silence. Not those with settings put since the call began, or
 * with another integration now; nor a paused one, or those who wait for a person would be all that is probed.
 */
function silentLanes(lanes: ReadonlyMap<string, Lane>, silent: readonly SilentLocation[]): Map<Lane, number> {
  const now = performance.now();
  const found = new Map<Lane, number>();
  for (const { locationId, integration, silentForS } of silent) {
    const lane = lanes.get(locationId);
    if (lane === undefined || lane.integration !== integration || lane.paused) continue;
    if (lane.settingsAt < now - silentForS * 1_000) found.set(lane, silentForS);
  }
  return found;
}

function countBy<Key>(keys: readonly Key[]): Map<Key, number> {
  const counts = new Map<Key, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}
