import { expect } from 'vitest';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import type { CanonicalOrder, OrderRef } from '../../../src/core/domain/order.ts';
import type { CancelAnswer } from '../../../src/core/domain/provider.ts';
import type { Fault, Ticket } from '../../../world/pos/simulator.ts';
import { rejectionOf } from './error-of.ts';
import type { Stage } from './open-stage.ts';
import { orderOf, type Claim, type Theatre } from './open-theatre.ts';

/** Answers that confirm nothing. */
const HOSTILE: readonly [string, unknown][] = [
  ['an empty body', ''],
  ['HTML', '<html>'],
  ['a list', []],
  ['an undocumented body', { oops: [1, { deep: 'secret' }] }],
];

type Sent = { order: CanonicalOrder; ref: OrderRef; ticket: Ticket };

/** Claims about `cancelOrder`. */
export function cancelClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  cancelledClaims(theatre, claim);
  uncertainClaims(theatre, claim);
}

/** How the claims cancel. */
function cancelling<Settings>({ provider, fixtures, ticketOf, expectNoSecrets }: Theatre<Settings>) {
  const { cancels } = fixtures;
  if (cancels === undefined) throw new Error('the provider has cancelOrder: add `cancels` to the fixtures');

  async function sent(at: Stage<Settings>): Promise<Sent> {
    const order = { ...orderOf(), cancelledAt: new Date().toISOString(), cancelReason: 'The meeting is off' };
    const { cancelledAt: _at, cancelReason: _why, ...placed } = order;
    const ticket = await ticketOf(at, placed);
    return { order, ticket, ref: { providerOrderId: ticket.providerOrderId } };
  }

  async function cancel(
    at: Stage<Settings>,
    { ref, order }: { ref: OrderRef; order: CanonicalOrder },
    context = at.contextOf(),
  ): Promise<CancelAnswer | undefined> {
    return provider.cancelOrder?.(ref, order, context);
  }

  async function failureOf(at: Stage<Settings>, about: Sent, context = at.contextOf()): Promise<Error> {
    const error = await rejectionOf(cancel(at, about, context));
    expectNoSecrets(at.pos, error);
    return error;
  }

  function faulty({ pos }: Stage<Settings>, fault: Fault): void {
    if (pos.cancels === undefined) expect.unreachable('add cancels and miscancel to the simulator');
    pos.miscancel = () => fault;
  }

  return { ...cancels, sent, cancel, failureOf, faulty };
}

/** What becomes of the ticket. */
function cancelledClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, stage } = theatre;
  const { answer, tooLate, sent, cancel, failureOf } = cancelling(theatre);

  claim(`returns ${answer} and cancels only that ticket`, async () => {
    const at = await stage();
    const [one, other] = [await sent(at), await sent(at)];
    const { requests } = at.pos;
    expect(await cancel(at, one)).toBe(answer);
    expect([one.ticket.cancelled, other.ticket.cancelled]).toEqual([true, undefined]);
    expect(at.pos.cancels, 'Simulator.cancels').toBeGreaterThan(0);
    expect([at.pos.requests, at.pos.tickets.length], 'no order').toEqual([requests, 2]);
    expect(at.pos.refusals).toEqual([]);
  });

  if (provider.deduplicatesCancels) {
    claim('returns the same answer when repeated', async () => {
      const at = await stage();
      const about = await sent(at);
      const first = await cancel(at, about);
      at.wait(10);
      expect(await cancel(at, about)).toBe(first);
      expect(at.pos.refusals).toEqual([]);
    });
  }

  if (tooLate !== undefined) {
    claim(`throws GiveUp with a reason for the member after the POS reports ${tooLate}`, async () => {
      const at = await stage();
      const about = await sent(at);
      if (at.pos.become === undefined) expect.unreachable('the simulator lacks become');
      at.pos.become(about.ticket, tooLate);
      const error = await failureOf(at, about);
      expect(error).toBeInstanceOf(GiveUp);
      expect((error as GiveUp).reason).toMatch(/^.{1,200}$/s);
      expect(about.ticket.cancelled).toBeUndefined();
    });
  }

  claim('does not return cancelled for an unknown order', async () => {
    const at = await stage();
    const about = await sent(at);
    for (const ref of [{ providerOrderId: 'NOSUCH1' }, {}]) {
      const said = await cancel(at, { ref, order: { ...about.order, serviceOrderId: 'no-such-order' } });
      expect([undefined, 'absent', 'requested'], JSON.stringify(ref)).toContain(said);
      at.wait(10);
    }
    expect(about.ticket.cancelled).toBeUndefined();
  });

  claim("without the POS's id, cancels the ticket or returns undefined", async () => {
    const at = await stage();
    const about = await sent(at);
    const said = await cancel(at, { ...about, ref: {} });
    expect([said, about.ticket.cancelled]).toEqual(said === undefined ? [undefined, undefined] : [answer, true]);
    if (said === undefined) expect(at.pos.cancels).toBe(0);
  });
}

/** Answers that confirm nothing, or do not come. */
function uncertainClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, stage, expectNoSecrets } = theatre;
  const { answer, sent, cancel, failureOf, faulty } = cancelling(theatre);

  claim('throws TryAgain with sent: true if the answer is lost', async () => {
    const at = await stage();
    const about = await sent(at);
    faulty(at, 'drop-answer');
    expect(await failureOf(at, about)).toMatchObject({ name: 'TryAgain', sent: true });
    expect(about.ticket.cancelled).toBe(true);
    at.pos.miscancel = undefined;
    at.wait(10);
    if (provider.deduplicatesCancels) expect(await cancel(at, about)).toBe(answer);
  });

  claim('throws TryAgain with sent: true when the POS hangs, and sends nothing after the time limit', async () => {
    const at = await stage();
    const about = await sent(at);
    expect(await failureOf(at, about, at.contextOf(AbortSignal.abort()))).toMatchObject({ sent: false });
    expect(at.pos.cancels).toBe(0);
    faulty(at, 'hang');
    const error = await failureOf(at, about, at.contextOf(AbortSignal.timeout(150)));
    expect(error).toMatchObject({ name: 'TryAgain', sent: true });
  });

  claim('after a 429, throws TryAgain with its Retry-After, and so does createOrder for the location', async () => {
    const at = await stage();
    const about = await sent(at);
    faulty(at, { status: 429, headers: { 'retry-after': '70' } });
    expect(await failureOf(at, about)).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: 70_000 });
    await expect(at.create(orderOf())).rejects.toMatchObject({ name: 'TryAgain', sent: false });
    expect(about.ticket.cancelled).toBeUndefined();
  });

  for (const [status, errors] of [
    [500, [TryAgain]],
    [503, [TryAgain]],
    [504, [TryAgain]],
    [401, [NeedsOperator]],
    [403, [NeedsOperator, GiveUp]],
    [418, [NeedsOperator, GiveUp]],
  ] as const)
    claim(`after ${status}, throws an error without the POS's words`, async () => {
      const at = await stage();
      const about = await sent(at);
      faulty(at, { status, body: { message: 'Xanadu', reason: 'Xanadu', error: { message: 'Xanadu' } } });
      const error = await cancel(at, about).catch((thrown: unknown) => thrown as Error);
      // After a refusal perhaps only a person can cancel it.
      if (status === 418 && error === undefined) return;
      if (!(error instanceof Error)) expect.unreachable(`was answered with ${error}`);
      expectNoSecrets(at.pos, error);
      expect(
        errors.some((type) => error instanceof type),
        String(error),
      ).toBe(true);
      expect(`${error.message} ${JSON.stringify(error.cause)}`).not.toContain('Xanadu');
    });

  for (const [name, body] of HOSTILE)
    claim(`does not return cancelled if the POS answers 200 with ${name}`, async () => {
      const at = await stage();
      const about = await sent(at);
      faulty(at, { status: 200, body });
      const said = await cancel(at, about).catch((error: unknown) => {
        if (error instanceof TryAgain || error instanceof NeedsOperator) return undefined;
        throw error;
      });
      expect([undefined, 'requested']).toContain(said);
    });

  claim('obtains a fresh token when the old one has expired', async () => {
    const at = await stage();
    const about = await sent(at);
    at.pos.expireTokens?.();
    expect(await cancel(at, about)).toBe(answer);
  });
}
