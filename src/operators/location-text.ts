import { facts, sections, table, time, titled } from '../cli/print.ts';
import type { LocationRow } from '../core/locations/locations.ts';
import type { ShownGrant } from '../core/locations/renew-connections.ts';
import type { SeenLocation, ShownLocation } from '../core/locations/show-location.ts';
import { actsTable } from './reading-operations.ts';

export function locationsTable(rows: readonly LocationRow[]): string {
  return table(
    rows.map((row) => ({
      location: row.locationId,
      integration: row.integration,
      paused: pausedInWords(row),
      updated: row.updatedAt,
    })),
    'No locations yet. See: expediter location put --help',
  );
}

/** A command shows only the field names of settings. If the settings cannot be used, `problem` says why. */
export type SettingsShown = { validTokens: number; settings: { fields: string[]; problem?: string } };

export function locationInWords(shown: ShownLocation & SettingsShown): string {
  const { locationId, settings, oldToken, knows, actions } = shown;
  return sections(
    facts({
      location: locationId,
      integration: shown.integration,
      country: shown.country,
      paused: pausedInWords(shown),
      updated: shown.updatedAt,
      'valid tokens': shown.validTokens,
      settings: settings.fields.join(', '),
      'connection renewed': shown.grant?.grantedAt,
      'connection lasts': grantInWords(shown.grant),
      'cannot be used': settings.problem,
      'refused: old token': oldToken && `${oldToken.webhooks} in 24 h, the last at ${time(oldToken.lastReceivedAt)}`,
      'fix it by': oldToken && fixOldToken(locationId, oldToken, knows.connect),
    }),
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

function pausedInWords({ pausedAt, pausedUntil }: Pick<LocationRow, 'pausedAt' | 'pausedUntil'>): string {
  if (pausedAt === null) return 'no';
  const byPos = pausedUntil === null ? '' : `, by its POS until ${time(pausedUntil)}`;
  return `since ${time(pausedAt)}${byPos}`;
}

function grantInWords(grant: ShownGrant | null): string | undefined {
  if (grant === null) return undefined;
  const { lastsUntil, daysLeft } = grant;
  return lastsUntil === null ? 'until it is revoked' : `until ${time(lastsUntil)}, ${daysLeft} days left`;
}
