/** The examples of docs/notify-restaurants.md. They call no provider: `fetch` is ours. */
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { read } from '../support/read-project.ts';

const page = read('docs/notify-restaurants.md');
const [sms = '', chat = '', call = ''] = [...page.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, code]) => code);
const post = sms.slice(sms.indexOf('const post'));

const orders = [{ noticeId: 'n1', callOutCode: 'K472', reason: 'in_doubt', answers: ['there', 'not_there'] }];
const data = {
  to: { phone: '+49301' },
  text: 'Look. https://x/answer/exa_1',
  answerUrl: 'https://x/answer/exa_1',
  orders,
};

it.each([
  ['an SMS', sms.slice(sms.indexOf('const send')), 'sms', { to: '+49301', message: data.text }],
  ['a chat message', post + chat, 'chat', { text: data.text }],
  [
    'a call',
    post + call,
    'calls',
    { to: '+49301', say: expect.stringContaining('K472, in doubt: press 1 for there,') },
  ],
])('the documented code sends %s in the format of its provider', async (_what, code, host, body) => {
  const sent: [url: string, body: string][] = [];
  const fetch = async (url: string, about: { body: unknown }) => {
    sent.push([url, String(about.body)]);
    return { ok: true, status: 303 };
  };
  const run = (more: string): unknown => runInNewContext(`${code}; ${more}`, { fetch, URLSearchParams, data });
  expect(await run(host === 'calls' ? 'send(data).then(() => press("n1", "2"))' : 'send(data)')).toBeTruthy();
  const [[url, first] = ['', ''], answer] = sent;
  expect([new URL(url).hostname, JSON.parse(first)]).toEqual([`${host}.example.com`, expect.objectContaining(body)]);
  expect(answer).toEqual(host === 'calls' ? [data.answerUrl, 'notice=n1&answer=not_there'] : undefined);
});
