import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTarget, type RunningTarget } from './start-target.ts';
import { FOLLOW_TOKEN } from '../../../world/hostile/follow-inputs.ts';
import { MARKER, SECRET, type HostileInput } from '../../../world/hostile/hostile-input.ts';
import type { Memory } from '../../support/memory-of.ts';
import { isLarge, send, sendInputs, sendSlowInputs } from './send-inputs.ts';
import { post, statusWebhook } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';

const MIB = 2 ** 20;
const ROUND = 1_500;
const ROUNDS = 8;
/**
 * What a round of so many inputs may leave behind, after others of the same kind; a healthy service leaves less than a
 * fifth of it. One that kept some headers of each request would leave more, let alone a body or a socket.
 */
const LEFT_BY_A_ROUND = MIB / 2;
const RESIDENT_BY_A_ROUND = 64 * MIB;

/**
 * Sends all inputs of one door to a service in a process of its own: each must be answered as it says, and leave
 * nothing behind, in memory or in the log.
 * @param more tests of this door alone
 */
export function withstand(
  door: string,
  inputs: readonly HostileInput[],
  more?: (running: () => RunningTarget) => void,
): void {
  const quick = inputs.filter((input) => !input.slow);
  const slow = inputs.filter((input) => input.slow);
  let running: RunningTarget;
  let slowOnes: Promise<string[]>;

  beforeAll(async () => {
    running = await startTarget();
    slowOnes = sendSlowInputs(running, slow);
    slowOnes.catch(() => {});
  });
  afterAll(() => running?.stop());

  describe(`hostile input to ${door} gets the right answer`, () => {
    it.each([...Map.groupBy(quick, ({ kind }) => kind)].map(([kind, some]) => [kind, some.length, some] as const))(
      '%s: %i inputs',
      async (_kind, _count, some) => {
        expect(await sendInputs(running, some)).toEqual([]);
      },
    );

    more?.(() => running);
  });

  describe(`hostile input to ${door} leaves`, () => {
    it('no memory in use, however often it comes', async () => {
      // Not what takes its time.
      const some = quick.filter(
        (input) => !isLarge(input) && input.pace.dribble === undefined && input.pace.afterwards !== 'leave',
      );
      const again = Array.from({ length: Math.ceil(ROUND / some.length) }, () => some).flat();
      await send(running, again, 24);
      const looks = [await running.memory()];
      const isSteady = (of: (memory: Memory) => number, limit: number): boolean => {
        const [first, second, third] = looks.slice(-3).map(of);
        return third !== undefined && Math.abs(second! - first!) < limit && Math.abs(third - second!) < limit;
      };
      const isHeld = (): boolean =>
        !isSteady(({ heapUsed, external }) => heapUsed + external, LEFT_BY_A_ROUND) ||
        !isSteady(({ rss }) => rss, RESIDENT_BY_A_ROUND);
      // What a request leaves, it leaves in each round. Only some rounds fill a cache, or free what one before them used.
      while (isHeld() && looks.length <= ROUNDS) {
        await send(running, again, 24);
        looks.push(await running.memory());
      }
      expect(isHeld(), JSON.stringify(looks)).toBe(false);
    });

    it(`no slow request open after 15 s: ${slow.length} inputs`, async () => {
      expect(await slowOnes).toEqual([]);
    });

    it('no connection open', async () => {
      // What remains are those to Postgres and to Pub/Sub.
      await until(async () => (await running.memory()).sockets <= 20);
    });

    it('the process able to place an order', async () => {
      const { system, pos, main } = running;
      const { serviceOrderId } = await system.placeOrder({ locationId: 'kitchen' });
      await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'sent');
      expect(pos.tickets.filter((ticket) => ticket.serviceOrderId === serviceOrderId)).toHaveLength(1);
      const webhook = statusWebhook({ serviceOrderId, status: 'COMPLETED' });
      const answer = await post(await system.webhookUrl('kitchen'), webhook);
      expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
      await until(() => system.live(serviceOrderId).some((message) => message.memberState === 'picked_up'));
      expect(main.child.exitCode).toBeNull();
    });

    it('no secret and no text of a payload in the log, even at level trace', () => {
      const small = inputs.filter((input) => !isLarge(input));
      const marked = small.filter((input) => input.bytes(running.target).includes(MARKER));
      expect(marked.length / small.length, 'they carry what no log may hold').toBeGreaterThan(0.8);
      const log = running.main.output();
      const { token, signedToken, listToken, pushToken, signalToken } = running.target;
      const [, claims = '', signature = ''] = pushToken.split('.');
      const [, followClaims = '', followSignature = ''] = FOLLOW_TOKEN.split('.');
      const tokens = { token, signedToken, listToken, signalToken, claims, signature, followClaims, followSignature };
      const forbidden = { ...tokens, secret: SECRET, marker: MARKER };
      const lines = log.split('\n');
      const found = Object.entries(forbidden).flatMap(([name, text]) =>
        spellings(text)
          .filter((spelling) => log.includes(spelling))
          .flatMap((spelling) => lines.filter((line) => line.includes(spelling)).map((line) => `${name}: ${line}`)),
      );
      expect(found.slice(0, 10)).toEqual([]);
      expect(lines.length, 'it was talkative').toBeGreaterThan(inputs.length);
    });
  });
}

/** As it is, in base64, in hex, and as JSON writes a Buffer. */
function spellings(text: string): string[] {
  const bytes = Buffer.from(text);
  return [text, bytes.toString('base64').replace(/=+$/, ''), bytes.toString('hex'), [...bytes].join(',')];
}
