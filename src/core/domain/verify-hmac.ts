import { createHmac, timingSafeEqual } from 'node:crypto';
import { NotAuthentic } from './errors.ts';
import type { Webhook } from './provider.ts';

/**
 * Verifies the HMAC-SHA256 that a sender puts into a header.
 * @param about.header the header's name in lower case
 * @param about.secret several if any of them may have signed it
 * @param about.signed the signed parts, in order
 * @param about.prefix the text before the signature in the header, such as `sha256=`
 * @throws NotAuthentic that names the header
 */
export function verifyHmac(
  { headers }: Pick<Webhook, 'headers'>,
  about: {
    header: string;
    secret: string | readonly string[];
    signed: readonly (string | Buffer)[];
    encoding: 'hex' | 'base64';
    prefix?: string;
  },
): void {
  const { header, secret, signed, encoding, prefix = '' } = about;
  const given = headers[header];
  if (given === undefined || given === '') {
    throw new NotAuthentic(`the header ${header} is missing`, { cause: { code: 'signature_missing', header } });
  }
  // A header that came twice was joined. No signature has a comma in it.
  const offered = given
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each.startsWith(prefix));
  if (offered.length === 0) {
    throw new NotAuthentic(`the header ${header} does not begin with ${prefix}`, {
      cause: { code: 'signature_of_other_scheme', header },
    });
  }
  const signatures = offered.map((each) => {
    const signature = each.slice(prefix.length);
    return Buffer.from(encoding === 'hex' ? signature.toLowerCase() : signature);
  });
  const isRight = [secret].flat().some((each) => {
    const hmac = createHmac('sha256', each);
    for (const part of signed) hmac.update(part);
    const right = Buffer.from(hmac.digest(encoding));
    return signatures.some((signature) => right.length === signature.length && timingSafeEqual(right, signature));
  });
  if (!isRight) {
    throw new NotAuthentic(`the signature in ${header} is wrong`, { cause: { code: 'signature_wrong', header } });
  }
}
