import { effect, signal } from '@preact/signals';
import { session } from '../sign-in.ts';
import { NO_ABOUT, type AboutDraft } from './about-draft.ts';
import type { SettingsDraft } from './settings-fields.ts';

/** What was typed for a new location. The settings of each integration are kept while another one is chosen. */
export type NewLocation = {
  locationId: string;
  integration: string;
  about: AboutDraft;
  settings: Readonly<Record<string, SettingsDraft>>;
};

const NOTHING: NewLocation = { locationId: '', integration: '', about: NO_ABOUT, settings: {} };

/** It stays in memory when its page closes, but not in the browser's storage, because it has secrets. */
export const newLocation = signal<NewLocation>(NOTHING);

export function forgetNewLocation(): void {
  newLocation.value = NOTHING;
}

/** The webhook address of the location that was just added, with its first token. Only its page shows it. */
export const firstAddress = signal<{ locationId: string; url: string }>();

effect(() => {
  if (session.value.state !== 'out') return;
  forgetNewLocation();
  firstAddress.value = undefined;
});
