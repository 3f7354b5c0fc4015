import { computed, signal } from '@preact/signals';
import { printable } from '../../src/observe/terminal-text.ts';
import { ask } from '../api.ts';
import type { ListedLocation, ListedLocations, ShownProvider } from '../wire.ts';

/** Characters of an id that tell two locations of one name apart. */
const END_CHARS = 6;

/** The locations that the operator may see. Empty until they are loaded. */
export const knownLocations = signal<readonly ListedLocation[]>([]);
export const vendors = signal<ReadonlyMap<string, string>>(new Map());
/** True until the names of a session were read for the first time, or could not be read. */
export const areNamesAwaited = signal(false);

/** Reads them again, such as after a location was added. A failure keeps the names of before. */
export async function readNames(): Promise<void> {
  const [{ locations }, { providers }] = await Promise.all([
    ask<ListedLocations>('GET', '/locations'),
    ask<{ providers: ShownProvider[] }>('GET', '/providers'),
  ]);
  // An answer in another form is an error, and changes nothing.
  knownLocations.value = [...locations];
  vendors.value = new Map(
    providers.map(({ integration, settings }) => [integration, titleOf(settings) ?? integration]),
  );
}

const titleOf = ({ title }: { title?: unknown }): string | undefined => (typeof title === 'string' ? title : undefined);

/** Shown names by id. */
export const names = computed(() => namesOf(knownLocations.value));

/** @returns a name for each id, without two that are the same. A location without a name has its id */
export function namesOf(all: readonly Pick<ListedLocation, 'locationId' | 'name'>[]): ReadonlyMap<string, string> {
  const idsOf = new Map<string, string[]>();
  const nameOf = ({ locationId, name }: (typeof all)[number]): string => printable(name?.trim() || locationId);
  for (const each of all) {
    const name = nameOf(each).toLowerCase();
    idsOf.set(name, [...(idsOf.get(name) ?? []), each.locationId]);
  }
  const shown = (each: (typeof all)[number]): string => {
    const ids = idsOf.get(nameOf(each).toLowerCase()) ?? [];
    if (ids.length === 1) return nameOf(each);
    const isEnough = new Set(ids.map((id) => id.slice(-END_CHARS))).size === ids.length;
    return `${nameOf(each)} (${printable(isEnough ? each.locationId.slice(-END_CHARS) : each.locationId)})`;
  };
  return new Map(all.map((each) => [each.locationId, shown(each)]));
}

/** What is shown of an id without a name. While names are read, it is not shown, because it would be a flash. */
const unnamed = (id: string): string => (areNamesAwaited.value && id !== '' ? '…' : printable(id));

/** What people call a location; its id if it has no name or is not known. */
export const locationName = (locationId: string): string => names.value.get(locationId) ?? unnamed(locationId);

/** What people call a vendor, by the title of its settings. */
export const vendorName = (integration: string): string => vendors.value.get(integration) ?? unnamed(integration);

/** For sentences about changes. */
export const NAMED = { vendor: vendorName, location: locationName };

type Named = { serviceOrderId: string; callOutCode: string | null; locationId: string | null };

/** What people call an order: its code, or its id until it has one, and its location. */
export const orderName = ({ serviceOrderId, callOutCode, locationId }: Named): string =>
  [callOutCode ?? printable(serviceOrderId), ...(locationId === null ? [] : [locationName(locationId)])].join(', ');

/** Whether the name or the id of a location contains a text in lower case. */
export const isCalled = (locationId: string | null, text: string): boolean =>
  locationId !== null && `${locationName(locationId)}\n${locationId}`.toLowerCase().includes(text);

type Options = (readonly [id: string, name: string])[];

/** Options for ids by name. They include the chosen one: a shared link may name one that is not there. */
export const optionsOf = (ids: readonly string[], chosen: string, nameOf: (id: string) => string): Options =>
  [...new Set([...ids, chosen].filter(Boolean))]
    .map((id) => [id, nameOf(id)] as const)
    .toSorted(([, one], [, other]) => NAMES.compare(one, other));

/** Options for the vendors of the locations. */
export const vendorOptions = (chosen: string): Options =>
  optionsOf(
    knownLocations.value.map(({ integration }) => integration),
    chosen,
    vendorName,
  );

/** Sorts `Club 9` before `Club 10`. */
export const NAMES = new Intl.Collator(undefined, { numeric: true });

/** A location by its name or id, as it was typed, or by a part of it that no other has. Undefined if there is none. */
export function findLocation(text: string, shown: ReadonlyMap<string, string> = names.value): string | undefined {
  const wanted = text.trim().toLowerCase();
  const exact = [...shown].find(([id, name]) => id === text.trim() || name.toLowerCase() === wanted);
  const [only, ...others] = exact
    ? [exact]
    : [...shown].filter((each) => each.join('\n').toLowerCase().includes(wanted));
  return others.length === 0 ? only?.[0] : undefined;
}
