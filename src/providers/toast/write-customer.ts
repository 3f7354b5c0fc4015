import { GiveUp } from '../../core/domain/errors.ts';
import type { CanonicalOrder } from '../../core/domain/order.ts';
import { splitName } from '../../core/domain/member-text.ts';

type Member = CanonicalOrder['member'];

/** "Up to 53 characters", only ASCII: https://doc.toasttab.com/openapi/orders/overview/ */
const EMAIL_MAX = 53;
const EMAIL = /^[!-?A-~]+@[!-\-/-?A-~]+(?:\.[!-\-/-?A-~]+)+$/;

/** Country codes of one and two digits (ITU-T E.164, list of assigned codes). All others have three. */
const SHORT_CODE = /^(1|7|20|27|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/;

/**
 * Writes the guest. Toast requires all of these fields for takeout and delivery. A missing one is not made up: Toast
 * tells guests apart by the e-mail address, and an invented one would be somebody else's.
 * https://doc.toasttab.com/doc/devguide/apiOrderTypeDetails.html
 * @throws GiveUp that names the field
 */
export function writeCustomer({ name, email, phone }: Member) {
  const { first, last } = splitName(name);
  if (email === undefined) throw wanting('member.email is missing', 'e-mail address');
  if (email.length > EMAIL_MAX || !EMAIL.test(email)) {
    throw wanting(`member.email is not an address of up to ${EMAIL_MAX} ASCII characters`, 'e-mail address');
  }
  if (phone === undefined) throw wanting('member.phone is missing', 'telephone number');
  // Toast requires two names. A single word serves as both.
  return { firstName: first, lastName: last || first, email, ...writePhone(phone) };
}

/**
 * Writes the phone number. "The phone number must have exactly 10 digits", as those of country code 1 have. How Toast
 * validates a number with `phoneCountryCode` is not documented, so others are sent as they are.
 */
function writePhone(e164: string): { phone: string; phoneCountryCode?: string } {
  const digits = e164.slice(1);
  const phoneCountryCode = SHORT_CODE.exec(digits)?.[0] ?? digits.slice(0, 3);
  const phone = digits.slice(phoneCountryCode.length);
  if (phoneCountryCode !== '1') return { phone, phoneCountryCode };
  if (phone.length !== 10)
    throw wanting('member.phone is of country code 1 without ten more digits', 'telephone number');
  return { phone };
}

function wanting(message: string, what: string): GiveUp {
  return new GiveUp(`Toast would refuse the order: ${message}`, {
    reason: `The restaurant cannot take the order without a valid ${what}.`,
    reasonCode: 'technical',
  });
}
