import { randomUUID } from 'node:crypto';

/** A UUID of version 7, RFC 9562 section 5.7: 48 bits of milliseconds since 1970, so it sorts by time, and 74 random bits. */
export function uuidV7(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  // A UUID of version 4 has its random bits in the same places.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
