import type { Contact } from '../../src/core/contacts/contact.ts';

type Place = { name: string; country: string; timeZone: string; address: string; contacts: Contact[] };

/** A contact whose telephone an operator calls. The numbers are ones that nobody has. */
const call = (name: string, phone: string): Contact => ({ name, phone });

/** What is known of the demo's restaurants, by the ids of their locations. */
export const PLACES: Readonly<Record<string, Place>> = {
  'demo-club': {
    name: 'Harbour Club',
    country: 'DE',
    timeZone: 'Europe/Berlin',
    address: 'Kaistraße 1, 20457 Hamburg',
    contacts: [call('Kim, shift lead', '+494066969010')],
  },
  'demo-bistro': {
    name: 'Market Bistro',
    country: 'GB',
    timeZone: 'Europe/London',
    address: '12 Market Row, London WC2E',
    contacts: [call('Oliver, kitchen', '+442079460142')],
  },
  'demo-lounge': {
    name: 'Brooklyn Lounge',
    country: 'US',
    timeZone: 'America/New_York',
    address: '48 Water St, Brooklyn, NY 11201',
    contacts: [call('Dana, manager', '+17185550142')],
  },
  'demo-terrace': {
    name: 'Sun Terrace',
    country: 'FR',
    timeZone: 'Europe/Paris',
    address: '3 quai du Port, 13002 Marseille',
    contacts: [call('Chloé, kitchen', '+33491900142')],
  },
  'demo-garden': {
    name: 'Garden Kitchen',
    country: 'DE',
    timeZone: 'Europe/Berlin',
    address: 'Gartenweg 5, 10115 Berlin',
    contacts: [{ ...call('Garden kitchen', '+493023125142'), via: 'webhook', about: ['in_doubt'] }],
  },
  'demo-by-hand': {
    name: 'Test Kitchen',
    country: 'DE',
    timeZone: 'Europe/Berlin',
    address: 'Your own desk',
    contacts: [],
  },
};

/** What people call a location of the demo. */
export const placeName = (locationId: string): string => PLACES[locationId]?.name ?? locationId;
