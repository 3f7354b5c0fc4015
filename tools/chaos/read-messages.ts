/**
 * Finds the boundaries of messages of Postgres's wire protocol in a stream that is split anywhere.
 * https://www.postgresql.org/docs/current/protocol-message-formats.html
 */

/** `typed` has a type byte and a length, `start-up` only a length. `byte` is the one-byte answer to SSLRequest. */
export type MessageForm = 'typed' | 'start-up' | 'byte' | 'unreadable';

export type ReadMessages = {
  /** Returns the form of the message that begins here. After `unreadable`, everything is skipped. */
  form(): MessageForm;
  /** Returns how many bytes of the body `onMessage` needs. The other bytes are only counted. */
  wanted(type: string): number;
  /**
   * @param type empty unless the message is `typed`
   * @param body the wanted beginning of the body, without type and length
   * @param end the position in the current chunk where the message ends
   */
  onMessage(type: string, body: Buffer, end: number): void;
};

const LENGTH_BYTES = 4;

/** Returns a function that takes the chunks of the stream. It copies only the wanted bytes. */
export function readMessages({ form, wanted, onMessage }: ReadMessages): (chunk: Buffer) => void {
  const header = Buffer.alloc(1 + LENGTH_BYTES);
  let current: MessageForm | undefined;
  let headerSeen = 0;
  let type = '';
  /** Bytes of the body still to come; undefined while the header is read. */
  let left: number | undefined;
  let kept = Buffer.alloc(0);
  let seenStored = 0;

  /** @returns how many bytes of the chunk it has read */
  function readHeader(chunk: Buffer, at: number): number {
    const size = current === 'typed' ? 1 + LENGTH_BYTES : LENGTH_BYTES;
    const taken = chunk.copy(header, headerSeen, at, at + size - headerSeen);
    headerSeen += taken;
    if (headerSeen < size) return taken;
    // The length includes itself.
    const length = header.readInt32BE(size - LENGTH_BYTES) - LENGTH_BYTES;
    if (length < 0) current = 'unreadable';
    else beginBody(current === 'typed' ? String.fromCharCode(header[0] ?? 0) : '', length);
    return taken;
  }

  function beginBody(ofType: string, length: number): void {
    type = ofType;
    left = length;
    kept = Buffer.alloc(Math.min(length, wanted(type)));
    seenStored = 0;
  }

  function readBody(chunk: Buffer, at: number, length: number): number {
    const taken = Math.min(length, chunk.length - at);
    seenStored += chunk.copy(kept, seenStored, at, at + taken);
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
