import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask } from '../api.ts';
import { Confirm } from '../parts/confirm.tsx';
import { orderName } from '../parts/names.ts';
import { Pick } from '../parts/pick.tsx';
import type { Chosen } from '../parts/use-chosen.ts';
import type { ListedOrders } from '../wire.ts';

type Row = ListedOrders['orders'][number];
type Action = 'retry' | 'cancel';

const ACTIONS: Record<Action, { title: string; means: string; does: string }> = {
  retry: {
    title: 'Retry these orders now?',
    means:
      'Each order is tried now. An order whose deadline has passed fails, which is final. An order of a paused location ' +
      'stays on hold.',
    does: 'Retry',
  },
  cancel: {
    title: 'Cancel these orders?',
    means:
      'Orders that were not sent are withdrawn. For the others, the POS is asked, and may refuse. The members are ' +
      'notified.',
    does: 'Cancel',
  },
};

/** What can be done with the chosen orders of a list. */
export function ManyOrders({ orders, chosen, onDone }: { orders: readonly Row[]; chosen: Chosen; onDone: () => void }) {
  // The orders stay as they were chosen while the dialog is open, also if the list loses them meanwhile.
  const [asked, setAsked] = useState<{ action: Action; picked: readonly Row[] }>();
  const picked = asked?.picked ?? orders.filter(({ serviceOrderId }) => chosen.ids.has(serviceOrderId));
  if (picked.length === 0) return null;
  const many = `${picked.length} ${picked.length === 1 ? 'order' : 'orders'}`;
  return (
    <div class="row chosen">
      <Pick chosen={chosen} ids={picked.map(({ serviceOrderId }) => serviceOrderId)} label="Choose none" />
      {many} chosen
      <AskButton onClick={() => setAsked({ action: 'retry', picked })}>Retry {many}</AskButton>
      <AskButton onClick={() => setAsked({ action: 'cancel', picked })}>Cancel {many}</AskButton>
      {asked !== undefined && (
        <Confirm
          title={ACTIONS[asked.action].title}
          action={`${ACTIONS[asked.action].does} ${many}`}
          isDangerous={asked.action === 'cancel'}
          onConfirm={() => actOnEach(picked, asked.action).then(resultsOf).finally(onDone)}
          onClose={() => {
            setAsked(undefined);
            chosen.clear();
          }}
        >
          <p>{ACTIONS[asked.action].means}</p>
          <p>{picked.map(orderName).join('; ')}</p>
        </Confirm>
      )}
    </div>
  );
}

type Result = { name: string; problem: string | undefined };

/** Acts on one order after the other, and goes on after a refusal. */
async function actOnEach(orders: readonly Row[], action: Action): Promise<Result[]> {
  const results: Result[] = [];
  for (const order of orders) {
    const problem = await ask('POST', `/orders/${encodeURIComponent(order.serviceOrderId)}/${action}`).then(
      () => undefined,
      ({ message }: Error) => message,
    );
    results.push({ name: orderName(order), problem });
  }
  return results;
}

function resultsOf(results: readonly Result[]): ComponentChildren {
  const refused = results.filter(({ problem }) => problem !== undefined);
  return (
    <>
      <p>Done: {results.length - refused.length}.</p>
      {refused.length > 0 && (
        <ul>
          {refused.map(({ name, problem }) => (
            <li key={name}>
              {name}: {problem}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
