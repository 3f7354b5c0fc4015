/**
 * Where one message of Postgres's wire protocol ends and the next begins, in a stream that is cut up anyhow.
 * https://www.postgresql.org/docs/current/protocol-message-formats.html
 */

/** `typed` has a type byte and a length, `start-up` a length alone; `byte` is a single one, the answer to SSLRequest. */
export type MessageForm = 'typed' | 'start-up' | 'byte' | 'unreadable';

export type ReadMessages = {
  /** Which form the message has that begins here. What follows an `unreadable` one is passed over for good. */
  form(): MessageForm;
  /** How many bytes of the body are wanted; of longer ones the rest is only counted. */
  keep(type: string): number;
  /**
   * @param type empty unless the message is `typed`
   * @param body its beginning, without type and length
   * @param end where in the chunk that is being read the message is over
   */
  onMessage(type: string, body: Buffer, end: number): void;
};

const LENGTH_BYTES = 4;

/** Returns what takes the stream's chunks. It copies no more than what is kept. */
export function readMessages({ form, keep, onMessage }: ReadMessages): (chunk: Buffer) => void {
  const header = Buffer.alloc(1 + LENGTH_BYTES);
  let current: MessageForm | undefined;
  let headerSeen = 0;
  let type = '';
  /** Of the body; undefined while the header is read. */
  let left: number | undefined;
  let kept = Buffer.alloc(0);
  let keptSeen = 0;

  /** @returns how many bytes it took */
  function readHeader(chunk: Buffer, at: number): number {
    const size = current === 'typed' ? 1 + LENGTH_BYTES : LENGTH_BYTES;
    const taken = chunk.copy(header, headerSeen, at, at + size - headerSeen);
    headerSeen += taken;
    if (headerSeen < size) return taken;
    // The length counts itself.
    const length = header.readInt32BE(size - LENGTH_BYTES) - LENGTH_BYTES;
    if (length < 0) current = 'unreadable';
    else beginBody(current === 'typed' ? String.fromCharCode(header[0] ?? 0) : '', length);
    return taken;
  }

  function beginBody(ofType: string, length: number): void {
    type = ofType;
    left = length;
    kept = Buffer.alloc(Math.min(length, keep(type)));
    keptSeen = 0;
  }

  function readBody(chunk: Buffer, at: number, length: number): number {
    const taken = Math.min(length, chunk.length - at);
    keptSeen += chunk.copy(kept, keptSeen, at, at + taken);
    left = length - taken;
    return taken;
  }

  return (chunk) => {
    let at = 0;
    while (at < chunk.length || left === 0) {
      if (current === undefined) {
        current = form();
        if (current === 'byte') beginBody('', 1);
      }
      if (current === 'unreadable') return;
      if (left === undefined) {
        at += readHeader(chunk, at);
      } else {
        at += readBody(chunk, at, left);
        if (left > 0) return;
        current = left = undefined;
        headerSeen = 0;
        onMessage(type, kept, at);
      }
    }
  };
}
