/** Loads Pub/Sub's client library, 300 ms that few can wait for. An emulator asks for no credentials. */
export async function loadPubsub(): Promise<typeof import('@google-cloud/pubsub')> {
  // The library would still look for them at Google's metadata server, and warn that there is none.
  if (process.env['PUBSUB_EMULATOR_HOST']) process.env['METADATA_SERVER_DETECTION'] ||= 'none';
  return import('@google-cloud/pubsub');
}
