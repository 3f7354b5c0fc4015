import type { z } from 'zod';
import { whatChanged } from '../core/domain/describe-change.ts';
import { notReachedInWords } from '../core/domain/explain-cause.ts';
import { facts, sections, table, tableOf, time, titled, titledFacts } from '../terminal/print.ts';
import type { ShownAvailability } from '../core/kitchens/settle-kitchens.ts';
import type { LocationRow } from '../core/locations/locations.ts';
import type { ShownGrant } from '../core/locations/renew-connections.ts';
import type { ChangedLocation, LocationChange } from '../core/locations/put-location.ts';
import type { SeenLocation, ShownLocation } from '../core/locations/show-location.ts';
import { actsTable, notesTable } from './reading-operations.ts';

export function locationsTable(rows: readonly SeenLocation[]): string {
  return tableOf('No locations yet. See: expediter location put --help', rows, (row) => ({
    location: row.locationId,
    name: row.name,
    integration: row.integration,
    groups: row.groups.join(', '),
    kitchen: row.kitchen.state,
    orders: row.open.failing && notReachedInWords(row.open.failing),
    paused: pausedInWords(row),
    updated: row.updatedAt,
  }));
}

function contactInWords({ name, email, phone, via, afterMinutes, quiet }: ShownLocation['contacts'][number]): string {
  const told = via === undefined ? [] : [`told by ${via}`, afterMinutes && `after ${afterMinutes} min`];
  const not = quiet && `not ${quiet.from}–${quiet.to}`;
  return [name, email, phone, ...told, not].filter((each) => each !== undefined && each !== 0).join(' ');
}

export function locationInWords(shown: ShownLocation): string {
  const { locationId, settings, oldToken, knows, actions } = shown;
  const known = Object.entries(settings).map(([name, setting]) => {
    if ('value' in setting) return [name, textOfValue(setting.value)] as const;
    return [name, `${setting.origin ?? 'secret'}, fingerprint ${setting.fingerprint}`] as const;
  });
  return sections(
    facts({
      location: locationId,
      name: shown.name,
      integration: shown.integration,
      groups: shown.groups.join(', '),
      country: shown.country,
      'time zone': shown.timeZone,
      address: shown.address,
      'back office': shown.backOfficeUrl,
      kitchen: availabilityInWords(shown.kitchen),
      contacts: shown.contacts.map(contactInWords).join(', '),
      paused: pausedInWords(shown),
      orders: shown.open.failing && notReachedInWords(shown.open.failing),
      'taken care of by': shown.case?.holder,
      'alarm hidden until': time(shown.snoozedUntil),
      'reconnect needed since': shown.reconnectNeededAt,
      updated: shown.updatedAt,
      'valid tokens': shown.validTokens,
      'connection renewed': shown.grant?.grantedAt,
      'connection lasts': grantInWords(shown.grant),
      'cannot be used': shown.settingsProblem,
      'refused: old token': oldToken && `${oldToken.webhooks} in 24 h, the last at ${time(oldToken.lastReceivedAt)}`,
      'fix it by': oldToken && fixOldToken(locationId, oldToken, knows.connect),
    }),
    titledFacts('Settings', Object.fromEntries(known)),
    titled('Notes', notesTable(shown.notes)),
    titled('What operators did', actsTable(actions)),
  );
}

function fixOldToken(
  locationId: string,
  { state }: NonNullable<SeenLocation['oldToken']>,
  canConnect: boolean,
): string {
  if (state === 'of another integration') return 'ending the webhooks at its previous POS';
  return canConnect ? `expediter provider connect ${locationId}` : `expediter token issue --location ${locationId}`;
}

function pausedInWords({ pausedAt, pausedUntil, pausedReason, pausedBy }: LocationRow): string {
  if (pausedAt === null) return 'no';
  const by = pausedBy ?? (pausedUntil === null ? null : 'its POS');
  const until = pausedUntil === null ? '' : ` until ${time(pausedUntil)}`;
  const reason = pausedReason === null ? '' : `: ${pausedReason}`;
  return `since ${time(pausedAt)}${by === null ? '' : `, by ${by}`}${until}${reason}`;
}

const SOURCES = { pos: 'its POS reports', operator: 'an operator', inferred: 'inferred' } as const;

export function availabilityInWords(kitchen: Omit<ShownAvailability, 'locationId' | 'integration'>): string {
  const { state, source, until, extraMinutes, by } = kitchen;
  const more = extraMinutes === null ? '' : `, ${extraMinutes} minutes more`;
  const said = state === 'open' ? '' : ` (${by ?? SOURCES[source]})`;
  return `${state}${more}${until === null ? '' : ` until ${time(until)}`}${said}`;
}

function grantInWords(grant: ShownGrant | null): string | undefined {
  if (grant === null) return undefined;
  const { lastsUntil, daysLeft } = grant;
  return lastsUntil === null ? 'until it is revoked' : `until ${time(lastsUntil)}, ${daysLeft} days left`;
}

function textOfValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

type Changed = z.infer<typeof ChangedLocation>;
export function changeInWords(done: Omit<Changed, 'warnings'> & Partial<Changed>, isDry: boolean): string {
  const { locationId, integration, created, changes, warnings = [], validTokens } = done;
  const state = created ? `served by ${integration}` : 'changed';
  const isSame = !created && changes.length === 0;
  const first = isSame
    ? `${locationId} ${isDry ? 'would stay as it is' : 'is unchanged'}`
    : `${locationId} ${isDry ? 'would be' : 'is'} ${state}`;
  const next =
    isDry || validTokens > 0 ? '' : `. For its webhooks, run: expediter token issue --location ${locationId}`;
  const warned = warnings.map((each) => `Warning: ${each}`).join('\n');
  return sections(`${first}${next}`, warned, created && !isDry ? '' : table(changes.map(changeRow)));
}

/** One changed field for people, as the columns of a table. The field is named as in a file. */
export function changeRow(change: LocationChange): { field: string; change: string } {
  return { field: change.field, change: whatChanged(change) };
}
