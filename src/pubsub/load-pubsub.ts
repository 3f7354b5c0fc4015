/** Loads Pub/Sub's client library, which takes 300 ms. */
export async function loadPubsub(): Promise<typeof import('@google-cloud/pubsub')> {
  // An emulator needs no credentials, but the library would search for them at Google's metadata server, and warn.
  if (process.env['PUBSUB_EMULATOR_HOST']) process.env['METADATA_SERVER_DETECTION'] ||= 'none';
  return import('@google-cloud/pubsub');
}
