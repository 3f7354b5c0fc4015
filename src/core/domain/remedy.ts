import { commandsOf, type Commands } from './location-commands.ts';

/** What an operator does next. */
export type Step = {
  say: string;
  /** The page of the console on which the step is done. */
  link?: { name: string; href: string };
  /** The command for the step. */
  run?: string;
};

/** Steps as a table has them. Those that are `false` do not apply. */
export type ToDo = string | readonly (string | Step | false)[];

export function stepsOf(toDo: ToDo): Step[] {
  const steps = typeof toDo === 'string' ? [toDo] : toDo;
  return steps.flatMap((step) => (step === false ? [] : [typeof step === 'string' ? { say: step } : step]));
}

/** Writes the first step in one line without its full stop, with the last command, which is the one that does it. */
export function inOneLine(steps: readonly Step[]): string {
  const [{ say } = { say: '' }] = steps;
  const run = steps.findLast((step) => step.run !== undefined)?.run;
  return [say.replace(/[.:]$/, ''), run].filter(Boolean).join(': ');
}

/** What people call an integration. Without it, texts have the id. */
export type Names = { vendorName?: (integration: string) => string };

/** A location and its integration. Null while unknown. */
export type Place = { locationId: string | null; integration: string | null } & Names;

export const vendorOf = ({ vendorName }: Names, integration: string): string =>
  vendorName?.(integration) ?? integration;

/** The page on which the settings of a location are changed. */
export const settingsPage = ({ locationId }: Pick<Place, 'locationId'>): Pick<Step, 'link'> =>
  locationId === null ? {} : { link: { name: 'Settings of the location', href: editPage(locationId, 'settings-') } };

/** The form that changes a location. It opens for people who may. @param field what the id of its first field begins with */
export const editPage = (locationId: string, field: string): string =>
  `/console/locations/${encodeURIComponent(locationId)}?edit=${field}`;

/** Changes some settings. The others stay. A step that ends with a colon is only for the command line. */
export function changeSettings(about: Place): Step[] {
  const edit = {
    say: 'Change the settings of the location. This needs the role integrator. All other settings stay.',
    ...settingsPage(about),
  };
  const commands = settingsCommands(about);
  if (commands === undefined) return about.locationId === null ? [] : [edit];
  const { schema, changeSettings: run } = commands;
  return [
    edit,
    { say: 'See what each setting means:', run: schema },
    { say: 'Write only what changes to a file settings.json, and store it:', run },
  ];
}

/** Stores all settings again, because none of the stored ones can be read. */
export function putSettings(about: Place): Step[] {
  const commands = settingsCommands(about);
  if (commands === undefined) return [];
  const { schema, putSettings: run } = commands;
  return [
    {
      say: 'Store all settings again, by command line. Take the credentials from the POS, and everything else from your own records.',
    },
    { say: 'See what each setting means:', run: schema },
    { say: 'Write all settings to a file settings.json, and store them:', run },
  ];
}

const settingsCommands = ({ locationId, integration }: Place): Commands | undefined =>
  locationId === null || integration === null ? undefined : commandsOf({ locationId, integration });
