/** Loads Pub/Sub's client library, which takes 300 ms. */
export async function loadPubsub(): Promise<typeof import('@google-cloud/pubsub')> {
  // An emulator needs no credentials. The library would search Google's metadata server for them, and warn.
  if (process.env['PUBSUB_EMULATOR_HOST']) process.env['METADATA_SERVER_DETECTION'] ||= 'none';
  return import('@google-cloud/pubsub');
}
