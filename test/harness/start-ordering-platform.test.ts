import { ClientError, gql, request } from 'graphql-request';
import { expect, onTestFinished, test } from 'vitest';
import { CanonicalOrder } from '../../src/core/domain/order.ts';
import { sampleOrder } from '../support/sample-order.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../support/start-ordering-platform.ts';

const query = gql`
  query Order($id: ID!) {
    order(id: $id) {
      serviceOrderId
      locationId
      member {
        id
        name
        email
        phone
      }
      fulfillment {
        type
        requestedAt
        destination {
          line1
          line2
          city
          postalCode
          region
          country
          latitude
          longitude
          instructions
        }
      }
      items {
        serviceItemId
        name
        quantity
        unitPrice
        notes
        ageRestricted
        modifiers {
          serviceModifierId
          name
          quantity
          unitPrice
        }
      }
      money {
        subtotal
        tax
        tip
        fee
        total
        currency
      }
      notes
      placedAt
    }
  }
`;

async function started(): Promise<OrderingPlatform> {
  const platform = await startOrderingPlatform({ token: 'secret' });
  onTestFinished(() => platform.stop());
  return platform;
}

function ask(platform: OrderingPlatform, id: string, token = 'secret'): Promise<{ order: unknown }> {
  return request<{ order: unknown }>(platform.url, query, { id }, { authorization: `Bearer ${token}` });
}

test.each(['pickup', 'delivery'] as const)('answers a %s order, whole and valid', async (type) => {
  const platform = await started();
  const order = sampleOrder({ type });
  platform.orders.set(order.serviceOrderId, order);

  const answer = await ask(platform, order.serviceOrderId);
  const withoutNulls: unknown = JSON.parse(JSON.stringify(answer.order), (_, value: unknown) => value ?? undefined);
  expect(CanonicalOrder.parse(withoutNulls)).toEqual(order);
  expect(platform.requests).toEqual([order.serviceOrderId]);
});

test('an order nobody placed is null, and a stranger is told nothing', async () => {
  const platform = await started();
  expect(await ask(platform, 'nobodys')).toEqual({ order: null });
  await expect(ask(platform, 'nobodys', 'wrong')).rejects.toMatchObject({ response: { status: 401 } });
});

test('goes wrong as told', async () => {
  const platform = await started();
  const order = sampleOrder({ serviceOrderId: 'order-1' });
  platform.orders.set('order-1', order);

  platform.answer = () => 'down';
  await expect(ask(platform, 'order-1')).rejects.toMatchObject({ response: { status: 503 } });
  platform.answer = () => 'null';
  expect(await ask(platform, 'order-1')).toEqual({ order: null });
  platform.answer = () => ({ errors: [{ message: 'not yours', extensions: { code: 'FORBIDDEN' } }] });
  const error: unknown = await ask(platform, 'order-1').catch((error: unknown) => error);
  expect(error).toBeInstanceOf(ClientError);
  expect(error).toMatchObject({ response: { errors: [{ extensions: { code: 'FORBIDDEN' } }] } });
  platform.answer = undefined;
  expect(await ask(platform, 'order-1')).toMatchObject({ order: { serviceOrderId: 'order-1' } });
});
