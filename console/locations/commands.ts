import { quote } from './quote.ts';

/** Commands of the command line. Each runs unchanged in a POSIX shell. */
export type Commands = Record<'issueToken' | 'connect' | 'show' | 'putSettings' | 'schema' | 'remove', string>;

export function commandsOf(
  location: { locationId: string; integration: string },
  token: { label?: string; expires?: string } = {},
): Commands {
  const { locationId } = location;
  const argument = locationId.startsWith('-') ? `-- ${quote(locationId)}` : quote(locationId);
  const ofLocation = option('--location', locationId);
  const { label = '', expires = '' } = token;
  return {
    issueToken: [
      `expediter token issue ${ofLocation}`,
      ...(label === '' ? [] : [option('--label', label)]),
      ...(expires === '' ? [] : [option('--expires', expires)]),
    ].join(' '),
    connect: `expediter provider connect ${argument}`,
    show: `expediter location show ${argument}`,
    putSettings: `expediter location put ${ofLocation} ${option('--integration', location.integration)} --settings - < settings.json`,
    schema: `expediter provider schema ${quote(location.integration)}`,
    remove: `expediter location remove ${argument}`,
  };
}

/** Writes an option. A value that begins with `-` follows a `=`, because it would otherwise be read as an option. */
function option(name: string, value: string): string {
  return value.startsWith('-') ? `${name}=${quote(value)}` : `${name} ${quote(value)}`;
}
