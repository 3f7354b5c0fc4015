import { z } from 'zod';
import { facts } from '../terminal/print.ts';
import { makeConnectLink } from '../core/locations/connect-links.ts';
import { disconnectLocation } from '../core/locations/disconnect-location.ts';
import { POS, SETTINGS, operation, refusing, type Operation, type Settings } from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { LocationParams } from './requests.ts';

const rulesOf = ({ registry, keys, publicUrl }: Settings) => ({ registry, keys, publicUrl: publicUrl || undefined });

const link = operation({
  id: 'makeConnectLink',
  access: { role: 'integrator', of: 'location', does: 'make connect link' },
  api: {
    route: 'POST /locations/:locationId/connect-links',
    summary: "Make a link with which the restaurant's owner grants access at the vendor of its POS",
    description:
      "Only for integrations whose vendor has such a page, now HubRise and Square. The settings need the application's " +
      'id and secret. Send the link only to the owner: anyone who has it can connect the location. It is valid once, for 72 hours. ' +
      'Earlier links of the location are no longer valid.',
    output: z.object({
      linkId: z.string(),
      url: z.string().meta({ description: 'It is not shown again, because only the SHA-256 of its token is stored.' }),
      expiresAt: z.date(),
    }),
    answer: 'The link.',
    refuses: [409],
  },
  params: LocationParams,
  reads: [...SETTINGS, 'CONSOLE_URL'],
  async run({ pool, settings, config, note, scope }, { locationId }) {
    const origin = config.CONSOLE_URL ?? settings.publicUrl;
    if (origin === '') {
      throw new NotDone(409, 'Neither CONSOLE_URL nor PUBLIC_URL is set, so the link would lead nowhere.');
    }
    const made = await makeConnectLink(pool, rulesOf(settings), locationId, scope() === undefined).catch(
      refusing('No link was made'),
    );
    const { linkId, token, expiresAt } = made;
    note(linkId);
    return { linkId, url: `${origin}/connect/${token}`, expiresAt };
  },
  print: ({ linkId, url, expiresAt }) => facts({ link: url, 'link id': linkId, 'valid until': expiresAt }),
  command: {
    name: 'provider connect-link',
    about:
      "make a link with which the restaurant's owner grants access at the vendor of its POS. It is valid once, for 72 " +
      'hours, and shown only once',
    more: `
For HubRise and Square. The settings need the application's id and secret. Register <CONSOLE_URL>/connect/callback as the
application's redirect URL at the vendor.
`,
    examples: ['expediter provider connect-link club-1'],
  },
});

const disconnect = operation({
  id: 'disconnectLocation',
  access: { role: 'integrator', of: 'location', does: 'disconnect' },
  api: {
    route: 'POST /locations/:locationId/disconnect',
    summary: "End our access to a location's POS",
    description:
      'Revokes the access at the vendor, removes it from the settings, and ends the open connect links. Orders of the ' +
      'location are then held until its restaurant grants access again. It takes up to 20 s.',
    output: z.object({
      locationId: z.string(),
      revoked: z.boolean().meta({
        description:
          'False if nothing was revoked at the vendor: there was no access, or another location shares it and needs it.',
      }),
    }),
    answer: 'The access has ended.',
    refuses: [409],
  },
  params: LocationParams,
  reads: POS,
  async run({ pool, settings, pos, note }, { locationId }) {
    const deps = { ...pos, pool, rules: rulesOf(settings) };
    const revoked = await disconnectLocation(deps, locationId).catch(refusing('Nothing was changed'));
    note(revoked ? 'revoked' : 'removed');
    return { locationId, revoked };
  },
  print: ({ locationId, revoked }) =>
    revoked
      ? `${locationId} is disconnected, and its access is revoked at the vendor`
      : `${locationId} is disconnected. Nothing was revoked at the vendor: there was no access, or another location shares it`,
  command: {
    name: 'provider disconnect',
    about: "end our access to a location's POS: revoke it at the vendor, and remove it from the settings",
    more: `
For HubRise and Square. Orders of the location are held until its restaurant grants access again. Pause the location if
you disconnect it for good, or an alert asks you to reconnect it.
`,
    examples: ['expediter provider disconnect club-1'],
  },
});

export const CONNECT_OPERATIONS: readonly Operation[] = [link, disconnect];
