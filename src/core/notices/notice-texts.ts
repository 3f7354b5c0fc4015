import { changesInWords, clockTime } from '../contacts/changes-in-words.ts';
import type { Contact, Language, NoticeReason } from '../contacts/contact.ts';
import type { KitchenChange } from '../domain/kitchen-changes.ts';

/** What a contact can answer about each trouble. */
export const ANSWERS = {
  late: ['seen'],
  failed: ['seen'],
  in_doubt: ['there', 'not_there'],
  cancel_by_phone: ['cancelled', 'too_late'],
  changed: ['done', 'too_late'],
} as const satisfies Record<NoticeReason, readonly string[]>;
export type Answer = (typeof ANSWERS)[NoticeReason][number];

/** An order as a contact is told about it. */
export type ToldOrder = {
  noticeId: string;
  callOutCode: string;
  reason: NoticeReason;
  since: Date;
  /** Only if it is changed. */
  told?: KitchenChange[] | null;
};

type Words = {
  /** The subject of a message about one order, and the sentence that says what to do. `at` is a time. */
  subject: Record<NoticeReason, (code: string) => string>;
  order: Record<NoticeReason, (code: string, at: string, changes: string) => string>;
  many: (orders: number) => string;
  link: string;
  test: string;
  answers: Record<Answer, string>;
  page: {
    answered: (who: string, answer: string, at: string) => string;
    settled: string;
    /** The answer could not be used now. */
    busy: string;
    ended: readonly [title: string, text: string];
    away: readonly [title: string, text: string];
  };
};

const en: Words = {
  subject: {
    late: (code) => `Order ${code} has not reached your till`,
    failed: (code) => `Order ${code} failed`,
    in_doubt: (code) => `Is order ${code} on your till?`,
    cancel_by_phone: (code) => `Cancel order ${code}`,
    changed: (code) => `Order ${code} is changed`,
  },
  order: {
    late: (code, at) => `Order ${code} of ${at} has not reached your till yet. Check the till and its internet.`,
    failed: (code, at) => `Order ${code} could not be sent to your till (${at}). Do not prepare it. The guest knows.`,
    in_doubt: (code, at) => `Look whether order ${code} of ${at} is on your till, then tell us.`,
    cancel_by_phone: (code, at) =>
      `Order ${code} is to be cancelled (${at}), and your till cannot be told. Cancel it by hand, then tell us.`,
    changed: (code, _at, changes) => `${code}: ${changes}. Tell us whether you can still do it, or ask us for more.`,
  },
  many: (orders) => `${orders} orders need you`,
  link: 'Answer here',
  test: 'This is a test. You will be told here when an order needs you. You need not do anything.',
  answers: {
    seen: 'I know',
    there: 'It is there',
    not_there: 'It is not there',
    cancelled: 'It is cancelled',
    too_late: 'It is too late',
    done: 'Done',
  },
  page: {
    answered: (who, answer, at) => `${who} answered at ${at}: “${answer}”.`,
    settled: 'This needs no answer any more.',
    busy: 'The order is being worked on at this moment. Try again in a minute.',
    ended: ['This link does not work any more', 'It is over a day old or incomplete. Use the link of a newer message.'],
    away: ['This page does not work now', 'Nothing was changed. Wait some minutes, then open your link again.'],
  },
};

const de: Words = {
  subject: {
    late: (code) => `Bestellung ${code} ist nicht in Ihrer Kasse angekommen`,
    failed: (code) => `Bestellung ${code} ist gescheitert`,
    in_doubt: (code) => `Ist Bestellung ${code} in Ihrer Kasse?`,
    cancel_by_phone: (code) => `Bestellung ${code} stornieren`,
    changed: (code) => `Bestellung ${code} ist geändert`,
  },
  order: {
    late: (code, at) =>
      `Bestellung ${code} von ${at} ist noch nicht in Ihrer Kasse. Prüfen Sie die Kasse und ihr Internet.`,
    failed: (code, at) =>
      `Bestellung ${code} konnte nicht an Ihre Kasse gesendet werden (${at}). Bereiten Sie sie nicht zu. Der Gast weiß es.`,
    in_doubt: (code, at) => `Sehen Sie nach, ob Bestellung ${code} von ${at} in Ihrer Kasse ist, und sagen Sie es uns.`,
    cancel_by_phone: (code, at) =>
      `Bestellung ${code} soll storniert werden (${at}), aber Ihre Kasse kann das nicht empfangen. Stornieren Sie sie von Hand und sagen Sie es uns.`,
    changed: (code, _at, changes) => `${code}: ${changes}. Sagen Sie uns, ob das noch geht, oder fragen Sie nach.`,
  },
  many: (orders) => `${orders} Bestellungen brauchen Sie`,
  link: 'Hier antworten',
  test: 'Dies ist ein Test. Hier erfahren Sie, wenn eine Bestellung Sie braucht. Sie müssen nichts tun.',
  answers: {
    seen: 'Ich weiß Bescheid',
    there: 'Sie ist da',
    not_there: 'Sie ist nicht da',
    cancelled: 'Sie ist storniert',
    too_late: 'Es ist zu spät',
    done: 'Erledigt',
  },
  page: {
    answered: (who, answer, at) => `${who} hat um ${at} geantwortet: „${answer}“.`,
    settled: 'Hier ist keine Antwort mehr nötig.',
    busy: 'Die Bestellung wird gerade bearbeitet. Versuchen Sie es in einer Minute noch einmal.',
    ended: [
      'Dieser Link gilt nicht mehr',
      'Er ist über einen Tag alt oder unvollständig. Nehmen Sie den Link einer neueren Nachricht.',
    ],
    away: [
      'Diese Seite geht gerade nicht',
      'Es wurde nichts geändert. Warten Sie einige Minuten und öffnen Sie den Link noch einmal.',
    ],
  },
};

const fr: Words = {
  subject: {
    late: (code) => `La commande ${code} n’est pas arrivée sur votre caisse`,
    failed: (code) => `La commande ${code} a échoué`,
    in_doubt: (code) => `La commande ${code} est-elle sur votre caisse ?`,
    cancel_by_phone: (code) => `Annulez la commande ${code}`,
    changed: (code) => `La commande ${code} a changé`,
  },
  order: {
    late: (code, at) =>
      `La commande ${code} de ${at} n’est pas encore arrivée sur votre caisse. Vérifiez la caisse et sa connexion.`,
    failed: (code, at) =>
      `La commande ${code} n’a pas pu être envoyée à votre caisse (${at}). Ne la préparez pas. Le client le sait.`,
    in_doubt: (code, at) => `Regardez si la commande ${code} de ${at} est sur votre caisse, puis dites-le-nous.`,
    cancel_by_phone: (code, at) =>
      `La commande ${code} est à annuler (${at}), et votre caisse ne peut pas le recevoir. Annulez-la à la main, puis dites-le-nous.`,
    changed: (code, _at, changes) =>
      `${code} : ${changes}. Dites-nous si c’est encore possible, ou demandez des précisions.`,
  },
  many: (orders) => `${orders} commandes ont besoin de vous`,
  link: 'Répondez ici',
  test: 'Ceci est un test. Vous saurez ici quand une commande a besoin de vous. Vous n’avez rien à faire.',
  answers: {
    seen: 'Je suis au courant',
    there: 'Elle est là',
    not_there: 'Elle n’est pas là',
    cancelled: 'Elle est annulée',
    too_late: 'C’est trop tard',
    done: 'C’est fait',
  },
  page: {
    answered: (who, answer, at) => `${who} a répondu à ${at} : « ${answer} ».`,
    settled: 'Aucune réponse n’est plus nécessaire.',
    busy: 'La commande est en cours de traitement. Réessayez dans une minute.',
    ended: [
      'Ce lien ne fonctionne plus',
      'Il a plus d’un jour ou il est incomplet. Utilisez le lien d’un message plus récent.',
    ],
    away: [
      'Cette page ne fonctionne pas en ce moment',
      'Rien n’a été changé. Attendez quelques minutes, puis rouvrez votre lien.',
    ],
  },
};

const es: Words = {
  subject: {
    late: (code) => `El pedido ${code} no ha llegado a su caja`,
    failed: (code) => `El pedido ${code} ha fallado`,
    in_doubt: (code) => `¿Está el pedido ${code} en su caja?`,
    cancel_by_phone: (code) => `Cancele el pedido ${code}`,
    changed: (code) => `El pedido ${code} ha cambiado`,
  },
  order: {
    late: (code, at) =>
      `El pedido ${code} de las ${at} no ha llegado todavía a su caja. Compruebe la caja y su conexión.`,
    failed: (code, at) => `El pedido ${code} no se pudo enviar a su caja (${at}). No lo prepare. El cliente lo sabe.`,
    in_doubt: (code, at) => `Mire si el pedido ${code} de las ${at} está en su caja y díganoslo.`,
    cancel_by_phone: (code, at) =>
      `El pedido ${code} se debe cancelar (${at}), y su caja no puede recibirlo. Cancélelo a mano y díganoslo.`,
    changed: (code, _at, changes) => `${code}: ${changes}. Díganos si todavía es posible, o pregúntenos más.`,
  },
  many: (orders) => `${orders} pedidos le necesitan`,
  link: 'Responda aquí',
  test: 'Esto es una prueba. Aquí sabrá cuándo un pedido le necesita. No tiene que hacer nada.',
  answers: {
    seen: 'Ya lo sé',
    there: 'Está',
    not_there: 'No está',
    cancelled: 'Está cancelado',
    too_late: 'Es demasiado tarde',
    done: 'Hecho',
  },
  page: {
    answered: (who, answer, at) => `${who} respondió a las ${at}: «${answer}».`,
    settled: 'Ya no hace falta ninguna respuesta.',
    busy: 'El pedido se está procesando en este momento. Inténtelo otra vez en un minuto.',
    ended: [
      'Este enlace ya no funciona',
      'Tiene más de un día o está incompleto. Use el enlace de un mensaje más nuevo.',
    ],
    away: ['Esta página no funciona ahora', 'No se ha cambiado nada. Espere unos minutos y vuelva a abrir su enlace.'],
  },
};

export const WORDS: Readonly<Record<Language, Words>> = { en, de, fr, es };

/** The language of a contact's messages, or of a browser by its Accept-Language. */
export function languageOf(wanted: string | undefined): Language {
  const [first = ''] = (wanted ?? '').toLowerCase().split(/[-,;]/);
  return Object.hasOwn(WORDS, first) ? (first as Language) : 'en';
}

export type Told = {
  contact: Contact;
  locationName: string;
  timeZone: string | null;
  /** Empty for a test. */
  orders: readonly ToldOrder[];
  answerUrl: string | null;
};

/** The sentence about one order, in the language of the contact. */
export function sentenceOf(
  { callOutCode, reason, since, told }: Omit<ToldOrder, 'noticeId'>,
  language: Language,
  timeZone: string | null,
): string {
  const changes = changesInWords(told ?? [], language, timeZone).join(', ');
  return WORDS[language].order[reason](callOutCode, clockTime(since, language, timeZone), changes);
}

/** Writes a message. It has no member data: only the codes of orders, times, items of a change, and what to do. */
export function writeNotice({ contact, locationName, timeZone, orders, answerUrl }: Told): {
  subject: string;
  text: string;
} {
  const language = languageOf(contact.language);
  const words = WORDS[language];
  const [first] = orders;
  const isOne = first !== undefined && orders.length === 1;
  const about = isOne ? words.subject[first.reason](first.callOutCode) : words.many(orders.length);
  const sentences = first === undefined ? [words.test] : orders.map((order) => sentenceOf(order, language, timeZone));
  const link = answerUrl === null ? [] : [`${words.link}: ${answerUrl}`];
  return {
    // The recipient of a test may be a stranger, so nothing in its subject is typed by the caller.
    subject: first === undefined ? 'Test' : `${locationName}: ${about}`,
    text: [locationName, ...sentences, ...link].join('\n\n'),
  };
}
