import { randomUUID } from 'node:crypto';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { digest } from '../../../src/core/operators/find-operator.ts';
import type { Answers } from '../../../world/network/post-at-pace.ts';
import type { Sending } from '../load/send-bodies.ts';
import { setLiveStage } from '../stage/set-live-stage.ts';
import { medianRatio, offerBeside, takePairs } from './take-pairs.ts';

export type BodyMeasurement = {
  /** The p95 of webhooks during an integrator's large item maps, against the p95 without them. */
  mapsP95: number;
  /** The same during bodies of many small lists. */
  listsP95: number;
};

const LOAD = { perSecond: 60, seconds: 6 };
const CONNECTIONS = 24;
/** A pair takes half a minute, because the last bodies wait for their turn. */
const PAIRS_A_ROUND = 2;
/** A body may have 10,000 values. */
const VALUES = 9_900;

/** 252 KiB. With an item map, a body may have 256. */
const MAPS = {
  integration: 'deliverect',
  settings: {
    baseUrl: 'https://api.deliverect.com',
    channelName: 'bench',
    channelLinkId: 'bench',
    clientId: 'bench',
    clientSecret: 'bench',
    hmacSecret: 'bench',
    itemMap: Object.fromEntries(
      Array.from({ length: VALUES }, (_, nth) => [`item-${String(nth).padStart(10, '0')}`, String(10_000 + nth)]),
    ),
  },
};
/** 58 KiB. Without an item map, a body may have 64. */
const LISTS = { integration: 'standard', settings: { lists: Array.from({ length: VALUES }, () => ['a']) } };

/** Measures what large bodies of one integrator cost the webhooks of the same process. */
export async function measureBodies(
  postgres: { url: string },
  about: { rounds: number },
  say: (line: string) => void,
): Promise<BodyMeasurement> {
  const stage = await setLiveStage(postgres.url);
  try {
    const service = await stage.startService('service', { OPERATOR_TOKEN: makeToken('exo_') });
    const token = makeToken('exo_');
    const location = stage.senders[0]?.locationId ?? '';
    await stage.client.query(
      `INSERT INTO operator_tokens (token_id, sha256, name, roles, locations) VALUES ($1, $2, 'bench', '{integrator}', $3)`,
      [randomUUID(), digest(token), [location]],
    );
    const sender = await stage.start('load/send-bodies');

    const compare = async (what: string, body: object): Promise<number> => {
      const sending = { url: `${service.url}/v1/locations/${location}`, token, body, connections: CONNECTIONS };
      const send = (seconds: number): Promise<Answers> =>
        sender.ask<Answers>({ ...sending, seconds } satisfies Sending);
      const pairs = await takePairs(
        about.rounds * PAIRS_A_ROUND,
        (kind) => offerBeside(stage, LOAD, kind === 'beside' ? send : undefined, async () => {}),
        ({ quiet, beside }) =>
          say(
            `  ${what}: webhooks p95 ${beside.p95Ms.toFixed(1)} ms, quiet ${quiet.p95Ms.toFixed(1)} ms; bodies ` +
              `${JSON.stringify(beside.disturbed)}; ${beside.spent}, quiet ${quiet.spent}`,
          ),
      );
      return medianRatio(pairs, ({ p95Ms }) => p95Ms);
    };
    return { mapsP95: await compare('item maps', MAPS), listsP95: await compare('small lists', LISTS) };
  } finally {
    await stage.stop();
  }
}
