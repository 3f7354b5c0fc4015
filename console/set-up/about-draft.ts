import { linesOf } from '../people/right-of.ts';
import type { ShownLocation } from '../wire.ts';

type Reason = NonNullable<ShownLocation['contacts'][number]['about']>[number];
/** What a contact can be told about, in words. */
export const REASONS: Record<Reason, string> = {
  late: 'a late order',
  failed: 'a failed order',
  in_doubt: 'an order in doubt',
  cancel_by_phone: 'an order to cancel',
  changed: 'a changed order',
};
const ALL_REASONS = Object.keys(REASONS) as Reason[];
export type ContactDraft = {
  name: string;
  email: string;
  phone: string;
  /** Empty if it is not told about orders. */
  via: string;
  afterMinutes: string;
  language: string;
  quietFrom: string;
  quietTo: string;
  /** What it is told about. */
  about: readonly Reason[];
};

/** The texts of the form about a location, without its POS. Groups are one per line. */
export type AboutDraft = {
  name: string;
  country: string;
  timeZone: string;
  address: string;
  backOfficeUrl: string;
  groups: string;
  contacts: readonly ContactDraft[];
};

export const NO_ABOUT: AboutDraft = {
  name: '',
  country: '',
  timeZone: '',
  address: '',
  backOfficeUrl: '',
  groups: '',
  contacts: [],
};
export const NO_CONTACT: ContactDraft = {
  name: '',
  email: '',
  phone: '',
  via: '',
  afterMinutes: '',
  language: 'en',
  quietFrom: '',
  quietTo: '',
  about: ALL_REASONS,
};

const CONTACT_FIELDS = ['', '.name', '.email', '.phone', '.via', '.afterMinutes', '.quiet.from', '.quiet.to', '.about'];

/** The ids of its inputs: the paths in the request. */
export const aboutIds = ({ contacts }: AboutDraft): string[] => [
  ...Object.keys(NO_ABOUT),
  ...contacts.flatMap((_, nth) => CONTACT_FIELDS.map((field) => `contacts.${nth}${field}`)),
];

export type About = Pick<ShownLocation, keyof AboutDraft>;

export function aboutOf(location: About): AboutDraft {
  return {
    name: location.name ?? '',
    country: location.country ?? '',
    timeZone: location.timeZone ?? '',
    address: location.address ?? '',
    backOfficeUrl: location.backOfficeUrl ?? '',
    groups: location.groups.join('\n'),
    contacts: location.contacts.map(({ quiet, afterMinutes, ...contact }) => ({
      ...NO_CONTACT,
      ...contact,
      ...(afterMinutes !== undefined && { afterMinutes: String(afterMinutes) }),
      ...(quiet !== undefined && { quietFrom: quiet.from, quietTo: quiet.to }),
    })),
  };
}

/** The fields of a request. Empty texts are null, and empty contacts are left out. */
export function readAbout({ name, country, timeZone, address, backOfficeUrl, groups, contacts }: AboutDraft) {
  return {
    name: name.trim() || null,
    country: country.trim().toUpperCase() || null,
    timeZone: timeZone.trim() || null,
    address: address.trim() || null,
    backOfficeUrl: backOfficeUrl.trim() || null,
    groups: linesOf(groups).toSorted(),
    contacts: contacts.filter(isFilled).map(readContact),
  };
}

/** An empty contact is left out. */
export const isFilled = (contact: ContactDraft): boolean => Object.keys(readContact(contact)).length > 0;

function readContact({ about, via, afterMinutes, language, quietFrom, quietTo, ...reach }: ContactDraft): object {
  const given = Object.entries(reach).flatMap(([field, text]) => (text.trim() === '' ? [] : [[field, text.trim()]]));
  return {
    ...(Object.fromEntries(given) as object),
    ...(via !== '' && {
      via,
      ...(afterMinutes !== '' && { afterMinutes: Number(afterMinutes) }),
      language,
      ...((quietFrom !== '' || quietTo !== '') && { quiet: { from: quietFrom, to: quietTo } }),
      // All of them, also of a later version.
      ...(about.length < ALL_REASONS.length && { about }),
    }),
  };
}
