import { describe, expect, it } from 'vitest';
import { throwWithHelp } from '../../console/orders/throw-with-help.ts';
import { Refused } from '../../console/api.ts';
import { describeCause, helpWith } from '../../src/core/domain/explain-cause.ts';
import { PLACEMENT_CODES, PlacementCause, RefusalCause } from '../../src/core/domain/placement-cause.ts';

const ABOUT = { locationId: 'club-1', integration: 'standard' };
/** The details of all codes. */
const DETAILS = {
  at: 'map-order.ts:42',
  error: 'MappingError',
  fields: ['order.lines.*.customerGroup'],
  httpStatus: 503,
  integration: 'standard',
  issues: [{ path: 'member.phone', received: 'string' }],
  keyId: '2026',
  providerOrderId: '8F2K',
  reason: 'private',
  seconds: 40,
  serviceOrderId: 'order-1',
  sqlstate: '22P05',
  state: 'sent',
  until: '2026-01-31T21:30:00.000Z',
};

const causes = [
  ...PLACEMENT_CODES.map((code) => PlacementCause.parse({ code, ...DETAILS })),
  ...RefusalCause.options.map(({ shape }) => RefusalCause.parse({ code: shape.code.value, ...DETAILS })),
].map((cause) => [cause.code, cause] as const);

describe('the cause of a problem', () => {
  it.each(causes)('%s is described in words', (_code, cause) => {
    expect(describeCause(cause)).toMatch(/^[a-zA-Z].*[^.]$/);
    expect(describeCause(cause)).not.toContain('undefined');
  });

  it.each(causes)('%s has steps that help, each in a sentence', (_code, cause) => {
    for (const about of [ABOUT, { locationId: null, integration: null }]) {
      const steps = helpWith(cause, about);
      expect(steps.length).toBeGreaterThan(0);
      for (const { say, run } of steps) {
        expect(say).toMatch(/^[A-Z].*[.:]$/);
        expect(say).not.toMatch(/undefined|null/);
        if (run !== undefined) expect(run).toMatch(/^expediter /);
      }
    }
  });
});

describe('a step that a page shows', () => {
  /** A step that ends with a colon is only for the command line. */
  const shown = (cause: (typeof causes)[number][1], integration: string | null) =>
    helpWith(cause, { locationId: 'club-1', integration }).filter(({ say }) => !say.endsWith(':'));

  it.each(causes)('about %s names no file', (_code, cause) => {
    expect(shown(cause, 'standard').filter(({ say }) => say.includes('.json'))).toEqual([]);
  });

  it.each([
    'wrong_settings',
    'pos_refused_us',
    'pos_set_up_wrong',
    'pos_host_refused',
    'pos_unreachable',
    'reconnect_needed',
  ])('about %s has a link to the settings of the location, also before its POS is known', (code) => {
    const [, cause] = causes.find(([each]) => each === code) ?? [];
    for (const integration of ['standard', null])
      expect(shown(cause ?? expect.unreachable(), integration).flatMap(({ link }) => link ?? [])).toEqual([
        { name: 'Settings of the location', href: '/console/locations/club-1?edit=settings-' },
      ]);
  });
});

it('an unknown cause has no steps that help', () => {
  for (const code of ['of_a_newer_version', 'constructor', '__proto__']) expect(helpWith({ code }, ABOUT)).toEqual([]);
  expect(helpWith(null, ABOUT)).toEqual([]);
});

it('the error of a refused request names the next step', () => {
  const refused = new Refused(409, describeCause({ code: 'needs_resolve' }), {
    reason: { code: 'needs_resolve' },
  });
  expect(() => throwWithHelp(refused)).toThrow(
    /check the POS, then resolve the order\. Call the restaurant, or look at the POS. Then enter the answer\.$/,
  );
  const other = new Refused(0, 'The service cannot be reached.');
  expect(() => throwWithHelp(other)).toThrow(other);
});
