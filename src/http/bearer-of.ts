import type { IncomingHttpHeaders } from 'node:http';

/** @returns the token of `Authorization: Bearer`, undefined where there is none */
export function bearerOf({ authorization }: IncomingHttpHeaders): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
}
