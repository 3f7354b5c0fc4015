/** Tells Expediter to fetch an order. The same signal may be sent any number of times. @throws if it is not committed there */
export async function signal(orderId: string): Promise<void> {
  const response = await fetch(process.env.SIGNAL_URL ?? '', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ orderId }),
    signal: AbortSignal.timeout(10_000),
  });
  await response.body?.cancel();
  if (response.status !== 204) throw new Error(`Expediter answered a signal with ${response.status}`);
}
