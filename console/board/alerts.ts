import { storedChoice } from '../parts/stored-choice.ts';
import type { Need } from './needs-of.ts';

const KEY = 'expediter.alerts';
/** Two short tones, in hertz. */
const TONES = [880, 660];
const TONE_S = 0.18;

/** Whether a new need makes a sound and a notification of the browser. Stored in this browser. */
export const hasAlerts = storedChoice(KEY, false);

let audio: AudioContext | undefined;

/** Turns alerts on. A press of a button must call it: only then does a browser ask for permission and allow sound. */
export async function turnAlertsOn(): Promise<void> {
  hasAlerts.store(true);
  ring();
  if ('Notification' in window && Notification.permission === 'default') await Notification.requestPermission();
}

export function turnAlertsOff(): void {
  hasAlerts.store(false);
}

/** What is new, in a few words. Names codes and locations, and no member. */
export const saysOf = (fresh: readonly Need[]): string =>
  fresh.length === 1 ? `Needs you: ${fresh[0]?.name}` : `${fresh.length} new things need you`;

/** Makes one sound and one notification for needs that are new. */
export function alertTo(fresh: readonly Need[]): void {
  const [first] = fresh;
  if (!hasAlerts.value || first === undefined) return;
  try {
    ring();
  } catch {
    // Without sound, the notification remains.
  }
  if (!('Notification' in window) || Notification.permission !== 'granted') return;
  try {
    const shown = new Notification(saysOf(fresh), {
      body: first.brief.join(' · '),
      tag: KEY,
      renotify: true,
    } as NotificationOptions);
    shown.addEventListener('click', () => window.focus());
  } catch {
    // Some phones allow notifications only to a service worker. The sound remains.
  }
}

function ring(): void {
  audio ??= new AudioContext();
  // After a reload, a browser allows no sound before the first press.
  void audio.resume();
  for (const [nth, hertz] of TONES.entries()) {
    const [tone, volume] = [audio.createOscillator(), audio.createGain()];
    const at = audio.currentTime + nth * TONE_S;
    tone.frequency.value = hertz;
    volume.gain.setValueAtTime(0.3, at);
    volume.gain.exponentialRampToValueAtTime(0.001, at + TONE_S);
    tone.connect(volume).connect(audio.destination);
    tone.start(at);
    tone.stop(at + TONE_S);
  }
}
