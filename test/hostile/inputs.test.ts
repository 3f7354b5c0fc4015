import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { MARKER, type HostileInput, type Target } from './hostile-input.ts';
import { byKind, forwardInputs, webhookInputs } from './inputs-by-door.ts';
import { pushTokenSigner } from './sign-push-token.ts';

const LEAST = 2_000;

/** Nobody is there: only the bytes are looked at. */
const nowhere: Target = {
  token: 'a'.repeat(43),
  signedToken: 'b'.repeat(43),
  listToken: 'c'.repeat(43),
  pushToken: pushTokenSigner('http://127.0.0.1:9').sign({}),
  signPushToken: pushTokenSigner('http://127.0.0.1:9').sign,
};
const doors: [string, HostileInput[]][] = [
  ['/webhook', webhookInputs()],
  ['/pubsub/push', forwardInputs()],
];

describe('the hostile inputs', () => {
  it(`are ${LEAST} or more, and no two are the same bytes`, () => {
    const seen = new Map<string, string>();
    const twice: string[] = [];
    for (const [door, inputs] of doors) {
      for (const input of inputs) {
        const name = `${door} ${input.kind} / ${input.name.slice(0, 60)}`;
        const digest = createHash('sha256')
          .update(input.bytes(nowhere))
          .update(input.pace.flood ?? '')
          .digest('hex');
        if (seen.has(digest)) twice.push(`${name} is ${seen.get(digest)}`);
        seen.set(digest, name);
      }
    }
    expect(twice).toEqual([]);
    expect(seen.size).toBeGreaterThanOrEqual(LEAST);
    console.log(table());
  });

  it('carry what no log may hold', () => {
    for (const [door, inputs] of doors) {
      const marked = inputs.filter((input) => input.bytes(nowhere).includes(MARKER));
      expect(marked.length / inputs.length, door).toBeGreaterThan(0.8);
    }
  });
});

function table(): string {
  const counts = doors.map(([, inputs]) => new Map(byKind(inputs).map(([kind, some]) => [kind, some.length])));
  const kinds = new Set(counts.flatMap((each) => [...each.keys()]));
  const line = (name: string, numbers: (number | string)[]): string =>
    `${name.padEnd(44)}${numbers.map((each) => String(each).padStart(14)).join('')}`;
  const of = (kind: string): number[] => counts.map((each) => each.get(kind) ?? 0);
  return [
    line(
      'hostile inputs',
      doors.map(([door]) => door),
    ),
    ...[...kinds].map((kind) =>
      line(
        kind,
        of(kind).map((count) => count || '-'),
      ),
    ),
    line(
      'in all',
      doors.map(([, inputs]) => inputs.length),
    ),
  ].join('\n');
}
