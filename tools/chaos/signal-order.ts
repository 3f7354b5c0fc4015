/** Signals an order as a push of Pub/Sub does, to a service with PUSH_AUTH=off. @throws Error unless answered 204 */
export async function signalOrder(url: string, serviceOrderId: string): Promise<void> {
  const message = { messageId: '1', attributes: { orderId: serviceOrderId } };
  const response = await fetch(`${url}/pubsub/push`, {
    method: 'POST',
    body: JSON.stringify({ message, subscription: 'projects/chaos/subscriptions/orders' }),
  });
  if (response.status !== 204) throw new Error(`a signal was answered ${response.status}`);
}
