import type { ShownLocation } from '../wire.ts';
import { aboutOf, NO_CONTACT, readAbout, type About, type AboutDraft } from './about-draft.ts';
import type { FieldProblems } from './field-problems.ts';
import {
  draftOf,
  isSame,
  mergePatchOf,
  moveDraft,
  readDraft,
  type Field,
  type SettingsDraft,
} from './settings-fields.ts';

/** The form that changes a location. */
export type Edit = { integration: string; about: AboutDraft; settings: SettingsDraft };

type Base = About & Pick<ShownLocation, 'integration' | 'settings'>;

/** The form that changes nothing. @param first the field that is edited first. A contact is there for it */
export function editOf(base: Base, fields: readonly Field[], first = ''): Edit {
  const about = aboutOf(base);
  if (first.startsWith('contact-') && about.contacts.length === 0) about.contacts = [NO_CONTACT];
  return { integration: base.integration, about, settings: draftOf(fields, shownSettings(base)) };
}

/** The settings without those whose value is not shown. */
function shownSettings({ settings }: Pick<Base, 'settings'>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).flatMap(([name, shown]) => ('value' in shown ? [[name, shown.value]] : [])),
  );
}

/** The body of the PATCH: only what changes. A secret that was not typed again stays. */
export function patchOf(
  edit: Edit,
  base: Base,
  fields: readonly Field[],
): { patch: Record<string, unknown>; problems: FieldProblems } {
  const isSamePos = edit.integration === base.integration;
  const shown = isSamePos ? shownSettings(base) : {};
  const { settings, removed, problems } = readDraft(fields, edit.settings, shown);
  const before = readAbout(aboutOf(base));
  const about = Object.entries(readAbout(edit.about)).filter(
    ([name, value]) => !isSame(value, before[name as keyof typeof before]),
  );
  const change = isSamePos ? (mergePatchOf(shown, settings) as object | undefined) : settings;
  const patched = { ...change, ...Object.fromEntries(removed.map((name) => [name, null])) };
  return {
    patch: {
      ...Object.fromEntries(about),
      ...(!isSamePos && { integration: edit.integration }),
      ...((!isSamePos || Object.keys(patched).length > 0) && { settings: patched }),
    },
    problems,
  };
}

/** Moves a form to a location that somebody else has changed meanwhile. */
export function moveEdit(edit: Edit, before: Edit, now: Edit): Edit {
  const isSamePos = edit.integration === before.integration;
  return {
    integration: isSamePos ? now.integration : edit.integration,
    about: moveDraft(edit.about, before.about, now.about),
    settings: !isSamePos
      ? edit.settings
      : before.integration === now.integration
        ? moveDraft(edit.settings, before.settings, now.settings)
        : now.settings,
  };
}
