import { domainToASCII } from 'node:url';
import { z } from 'zod';

/** The address as mail servers know it: a domain with other letters is sent in Punycode (RFC 5891). */
export function asciiAddress(address: string): string {
  const at = address.lastIndexOf('@') + 1;
  return address.slice(0, at) + domainToASCII(address.slice(at));
}

/** An e-mail address, also of a domain such as `müller.example`. */
export const Email = z
  .string()
  .max(254)
  .refine((address) => z.email().safeParse(asciiAddress(address)).success, { error: 'is not an e-mail address' })
  .meta({ format: 'idn-email' });
