import { quote } from './quote.ts';

/** Commands of the command line. Each runs unchanged in a POSIX shell. */
export type Commands = Record<'connect' | 'changeSettings' | 'putSettings' | 'schema', string>;

export function commandsOf(location: { locationId: string; integration: string }): Commands {
  const { locationId } = location;
  const argument = locationId.startsWith('-') ? `-- ${quote(locationId)}` : quote(locationId);
  const ofLocation = option('--location', locationId);
  return {
    connect: `expediter provider connect ${argument}`,
    changeSettings: `expediter location change --settings - ${argument} < settings.json`,
    putSettings: `expediter location put ${ofLocation} ${option('--integration', location.integration)} --settings - < settings.json`,
    schema: `expediter provider schema ${quote(location.integration)}`,
  };
}

/** Writes an option. A value that begins with `-` follows a `=`, because it would otherwise be read as an option. */
function option(name: string, value: string): string {
  return value.startsWith('-') ? `${name}=${quote(value)}` : `${name} ${quote(value)}`;
}
