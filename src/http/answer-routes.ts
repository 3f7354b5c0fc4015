import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import { answerNotice, findAnswerPage, type AnswerPage } from '../core/notices/answer-notice.ts';
import { clockTime } from '../core/contacts/changes-in-words.ts';
import { ANSWERS, languageOf, sentenceOf, WORDS } from '../core/notices/notice-texts.ts';
import { ANSWER_PATH } from '../core/notices/send-notices.ts';
import { sendPage, servePages, type Page } from './connect/connect-page.ts';
import { isDatabaseAway } from './operator/answer-errors.ts';
import { actionFrom } from './request.ts';
import type { JudgeSlowly } from './throttle-failures.ts';

export type AnswerDeps = {
  pool: Pool;
  judge: JudgeSlowly;
  wake(): void;
};

/**
 * The pages where contacts of restaurants answer a message, by its link. Only a POST changes something, so programs that
 * open links in e-mail do no harm.
 *
 * - `GET /answer/:token` the orders of the message, with buttons; `404` if the link is not valid
 * - `POST /answer/:token` one answer as a form: `notice` and `answer`. Then `303` to the page; `409` if it cannot be used
 *   now, `400` if the page has no such order or answer, `415` if it is not a form
 */
export async function answerRoutes(scope: FastifyInstance, { pool, judge, wake }: AnswerDeps): Promise<void> {
  await scope.register(pages, { prefix: ANSWER_PATH });

  async function pages(page: FastifyInstance): Promise<void> {
    servePages(page);
    page.setErrorHandler((error, request, reply) => {
      const { statusCode = 500 } = error as { statusCode?: number };
      if (statusCode < 500) return showWords(request, reply, statusCode, 'ended');
      if (!isDatabaseAway(error)) request.log.error({ err: error }, 'an answer page failed');
      return showWords(request, reply, 503, 'away');
    });

    const find = (request: FastifyRequest<{ Params: { token: string } }>): Promise<AnswerPage | undefined> => {
      const { token } = request.params;
      return judge(request, 'answer_link', [token], () => findAnswerPage(pool, token));
    };

    page.get<{ Params: { token: string } }>('/:token', async (request, reply) => {
      const found = await find(request);
      return found === undefined ? showWords(request, reply, 404, 'ended') : sendPage(reply, 200, askContact(found));
    });

    page.post<{ Params: { token: string }; Body: URLSearchParams }>('/:token', async (request, reply) => {
      const found = await find(request);
      if (found === undefined) return showWords(request, reply, 404, 'ended');
      const { body } = request;
      const given = { noticeId: body?.get?.('notice') ?? '', answer: body?.get?.('answer') ?? '' };
      const done = await answerNotice(pool, found, given, actionFrom(request));
      if (done === 'unusable') return sendPage(reply, 400, askContact(found));
      if (done !== undefined && 'refused' in done) {
        const after = await findAnswerPage(pool, request.params.token);
        return sendPage(reply, 409, askContact(after ?? found, given.noticeId));
      }
      wake();
      // A relative address, because a proxy may serve us below another path.
      return reply.redirect(request.params.token, 303);
    });
  }
}

/** @param busy the notice whose answer could not be used now */
function askContact(page: AnswerPage, busy?: string): Page {
  const { contact, timeZone, locationName } = page;
  const language = languageOf(contact.language);
  const words = WORDS[language];
  const items = page.orders.map((order) => {
    const { answered, isOpen, reason, noticeId } = order;
    const text = [sentenceOf(order, language, timeZone)];
    if (answered !== null) {
      const at = clockTime(answered.at, language, timeZone);
      text.push(words.page.answered(answered.by, words.answers[answered.answer], at));
    } else if (!isOpen) text.push(words.page.settled);
    else if (noticeId === busy) text.push(words.page.busy);
    const buttons = isOpen ? ANSWERS[reason].map((answer) => ({ value: answer, words: words.answers[answer] })) : [];
    return { text, name: 'notice', value: noticeId, buttonName: 'answer', buttons };
  });
  return { title: locationName, text: [], items, language, style: 'page.css' };
}

function showWords(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  which: 'ended' | 'away',
): FastifyReply {
  const language = languageOf(request.headers['accept-language']);
  const [title, text] = WORDS[language].page[which];
  return sendPage(reply, status, { title, text: [text], language, style: 'page.css' });
}
