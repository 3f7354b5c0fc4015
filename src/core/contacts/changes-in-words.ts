import type { KitchenChange } from '../domain/kitchen-changes.ts';
import type { Language } from './contact.ts';

type Plain = Exclude<KitchenChange, { name: string } | { was: unknown } | { count: number }>['what'];
type Words = Record<Plain, string> & {
  added: (items: string) => string;
  removed: (items: string) => string;
  instead: (items: string, was: number) => string;
  item_note: (name: string) => string;
  more: (count: number) => string;
  wanted: (is: string | null, was: string | null) => string;
};

const ASAP = { en: 'as soon as possible', de: 'so bald wie möglich', fr: 'dès que possible', es: 'lo antes posible' };
const WORDS: Readonly<Record<Language, Words>> = {
  en: {
    added: (items) => `${items} added`,
    removed: (items) => `${items} removed`,
    instead: (items, was) => `${items} instead of ${was}`,
    item_note: (name) => `the note of ${name} is changed`,
    more: (count) => `${count} more differences of items`,
    wanted: (is, was) => `wanted ${is === null ? ASAP.en : `at ${is}`} instead of ${was ?? ASAP.en}`,
    pickup: 'picked up instead of delivered',
    delivery: 'delivered instead of picked up',
    note: 'the note of the order is changed',
    address: 'the address is changed',
    member: 'the name or telephone number is changed',
    location: 'it is for another location',
  },
  de: {
    added: (items) => `${items} zusätzlich`,
    removed: (items) => `${items} gestrichen`,
    instead: (items, was) => `${items} statt ${was}`,
    item_note: (name) => `die Notiz zu ${name} ist geändert`,
    more: (count) => `${count} weitere Unterschiede bei den Artikeln`,
    wanted: (is, was) => `gewünscht ${is === null ? ASAP.de : `um ${is}`} statt ${was ?? ASAP.de}`,
    pickup: 'Abholung statt Lieferung',
    delivery: 'Lieferung statt Abholung',
    note: 'die Notiz der Bestellung ist geändert',
    address: 'die Adresse ist geändert',
    member: 'der Name oder die Telefonnummer ist geändert',
    location: 'sie ist für einen anderen Standort',
  },
  fr: {
    added: (items) => `${items} en plus`,
    removed: (items) => `${items} en moins`,
    instead: (items, was) => `${items} au lieu de ${was}`,
    item_note: (name) => `la note de ${name} a changé`,
    more: (count) => `${count} autres différences d’articles`,
    wanted: (is, was) => `souhaitée ${is === null ? ASAP.fr : `à ${is}`} au lieu de ${was ?? ASAP.fr}`,
    pickup: 'à emporter au lieu de livrée',
    delivery: 'livrée au lieu d’à emporter',
    note: 'la note de la commande a changé',
    address: 'l’adresse a changé',
    member: 'le nom ou le numéro de téléphone a changé',
    location: 'elle est pour un autre restaurant',
  },
  es: {
    added: (items) => `${items} más`,
    removed: (items) => `sin ${items}`,
    instead: (items, was) => `${items} en lugar de ${was}`,
    item_note: (name) => `la nota de ${name} ha cambiado`,
    more: (count) => `${count} diferencias más de artículos`,
    wanted: (is, was) => `para ${is === null ? ASAP.es : `las ${is}`} en lugar de ${was ?? ASAP.es}`,
    pickup: 'para recoger en lugar de enviar',
    delivery: 'para enviar en lugar de recoger',
    note: 'la nota del pedido ha cambiado',
    address: 'la dirección ha cambiado',
    member: 'el nombre o el número de teléfono ha cambiado',
    location: 'es para otro restaurante',
  },
};

/** A time at the restaurant, such as `18:05`. */
export function clockTime(at: Date, language: Language, timeZone: string | null, withDay = false): string {
  const zone = timeZone === null ? ({ timeZone: 'UTC', timeZoneName: 'short' } as const) : { timeZone };
  const day = withDay ? ({ day: 'numeric', month: 'short' } as const) : {};
  return at.toLocaleString(language, { ...day, hour: '2-digit', minute: '2-digit', hourCycle: 'h23', ...zone });
}

/** Writes each change in a few words, such as `2 × Burger instead of 1`. They have no text that only the member wrote. */
export function changesInWords(
  changes: readonly KitchenChange[],
  language: Language = 'en',
  timeZone: string | null = null,
): string[] {
  const words = WORDS[language];
  return changes.map((change) => {
    if (change.what === 'item') {
      const { name, was, is } = change;
      if (was === 0) return words.added(`${is} × ${name}`);
      return is === 0 ? words.removed(`${was} × ${name}`) : words.instead(`${is} × ${name}`, was);
    }
    if (change.what === 'item_note') return words.item_note(change.name);
    if (change.what === 'more') return words.more(change.count);
    if (change.what !== 'wanted') return words[change.what];
    const dates = [change.is, change.was].map((at) => (at === null ? null : new Date(at)));
    const [day, other] = dates.map((at) => at?.toLocaleDateString('en', { timeZone: timeZone ?? 'UTC' }));
    const [is = null, was = null] = dates.map((at) => at && clockTime(at, language, timeZone, day !== other));
    return words.wanted(is, was);
  });
}
