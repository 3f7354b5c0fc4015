import { linesOf } from '../people/right-of.ts';
import type { ShownLocation } from '../wire.ts';

export type ContactDraft = { name: string; email: string; phone: string };

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
export const NO_CONTACT: ContactDraft = { name: '', email: '', phone: '' };

/** The ids of its inputs: the fields of the request. */
export const ABOUT_IDS = Object.keys(NO_ABOUT) as readonly (keyof AboutDraft)[];

export type About = Pick<ShownLocation, keyof AboutDraft>;

export function aboutOf(location: About): AboutDraft {
  return {
    name: location.name ?? '',
    country: location.country ?? '',
    timeZone: location.timeZone ?? '',
    address: location.address ?? '',
    backOfficeUrl: location.backOfficeUrl ?? '',
    groups: location.groups.join('\n'),
    contacts: location.contacts.map((contact) => ({ ...NO_CONTACT, ...contact })),
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
    contacts: contacts.flatMap((contact) => {
      const given = Object.entries(contact).flatMap(([field, text]) =>
        text.trim() === '' ? [] : [[field, text.trim()]],
      );
      return given.length === 0 ? [] : [Object.fromEntries(given) as Partial<ContactDraft>];
    }),
  };
}
