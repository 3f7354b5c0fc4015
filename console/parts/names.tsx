import { computed, effect, signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { printable } from '../../src/observe/terminal-text.ts';
import { ask } from '../api.ts';
import { session } from '../sign-in.ts';
import type { ListedLocation, ListedLocations, ShownProvider } from '../wire.ts';
import { Text } from './form.tsx';

/** How often names, telephone numbers and groups are read again. */
const EVERY_MS = 300_000;
/** Characters of an id that tell two locations of one name apart. */
const END_CHARS = 6;

/** The locations that the operator may see. Empty until they are loaded. */
export const knownLocations = signal<readonly ListedLocation[]>([]);
const vendors = signal<ReadonlyMap<string, string>>(new Map());

/** Reads them again, such as after a location was added. A failure keeps the names of before. */
export async function readNames(): Promise<void> {
  const [{ locations }, { providers }] = await Promise.all([
    ask<ListedLocations>('GET', '/locations'),
    ask<{ providers: ShownProvider[] }>('GET', '/providers'),
  ]);
  knownLocations.value = locations;
  vendors.value = new Map(
    providers.map(({ integration, settings }) => [integration, titleOf(settings) ?? integration]),
  );
}

const titleOf = ({ title }: { title?: unknown }): string | undefined => (typeof title === 'string' ? title : undefined);

effect(() => {
  if (session.value.state !== 'in') return undefined;
  const read = (): void => {
    if (document.visibilityState === 'visible') void readNames().catch(() => {});
  };
  read();
  const timer = setInterval(read, EVERY_MS);
  return () => clearInterval(timer);
});

/** Shown names by id. */
const names = computed(() => namesOf(knownLocations.value));

/** @returns a name for each id, without two that are the same. A location without a name has its id */
export function namesOf(all: readonly Pick<ListedLocation, 'locationId' | 'name'>[]): ReadonlyMap<string, string> {
  const nameOf = ({ locationId, name }: (typeof all)[number]): string => printable(name?.trim() || locationId);
  const counts = new Map<string, number>();
  for (const each of all) counts.set(nameOf(each), (counts.get(nameOf(each)) ?? 0) + 1);
  const shown = (each: (typeof all)[number]): string => {
    const isShared = (counts.get(nameOf(each)) ?? 0) > 1;
    return isShared ? `${nameOf(each)} (${printable(each.locationId).slice(-END_CHARS)})` : nameOf(each);
  };
  return new Map(all.map((each) => [each.locationId, shown(each)]));
}

/** What people call a location; its id if it has no name or is not known. */
export const locationName = (locationId: string): string => names.value.get(locationId) ?? printable(locationId);

/** What people call a vendor, such as `Lightspeed K`. */
export const vendorName = (integration: string): string => vendors.value.get(integration) ?? printable(integration);

/** A location's name, with its id as a tooltip. */
export function LocationName({ id }: { id: string }) {
  return <span title={printable(id)}>{locationName(id)}</span>;
}

/** A location, by name or id, as it was typed. Undefined if there is none. */
export function findLocation(text: string, shown: ReadonlyMap<string, string> = names.value): string | undefined {
  const wanted = text.trim().toLowerCase();
  return [...shown].find(([id, name]) => id === text.trim() || name.toLowerCase() === wanted)?.[0];
}

/**
 * The choice of a location by its name. A text that names none is refused.
 * @param value its id, or empty for none; also one that no longer exists, because a shared link may name it
 */
export function LocationField({
  id,
  label,
  value,
  onChoose,
}: {
  id: string;
  label: string;
  value: string;
  onChoose: (locationId: string) => void;
}) {
  const shown = value === '' ? '' : locationName(value);
  const [text, setText] = useState(shown);
  const [isUnknown, setUnknown] = useState(false);
  useEffect(() => {
    setText(shown);
    setUnknown(false);
  }, [shown]);
  const choose = (): void => {
    const found = text.trim() === '' ? '' : text === shown ? value : findLocation(text);
    setUnknown(found === undefined);
    if (found !== undefined && found !== value) onChoose(found);
  };
  return (
    <Text
      id={id}
      label={label}
      value={text}
      problem={isUnknown ? 'No location has this name. Choose one of the list.' : undefined}
      offers={[...names.value].map(([each, name]) => (name === each ? [each] : [name, each]))}
      onWrite={setText}
      onDone={choose}
    />
  );
}
