import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';

/** A message as the server got it. */
export type Mail = { from: string; to: string[]; headers: string; body: string; messageId: string };

export type MailServer = {
  /** For SMTP_URL. */
  url: string;
  mails: Mail[];
  /** What the server says to a sender, a recipient or a message in place of taking it, such as `550 5.1.1 unknown`. */
  refuses: { mail?: string; rcpt?: string; data?: string };
  stop(): Promise<void>;
};

/** A real SMTP server without TLS, on this machine. */
export async function startMailServer(): Promise<MailServer> {
  const mails: Mail[] = [];
  const refusal = (reply: string): Error =>
    Object.assign(new Error(reply.slice(4)), { responseCode: Number(reply.slice(0, 3)) });
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    onMailFrom: (_address, _session, done) => done(mail.refuses.mail === undefined ? null : refusal(mail.refuses.mail)),
    onRcptTo: (_address, _session, done) => done(mail.refuses.rcpt === undefined ? null : refusal(mail.refuses.rcpt)),
    onData(stream, { envelope }, done) {
      const take = async (): Promise<Error | null> => {
        const raw = await text(stream);
        if (mail.refuses.data !== undefined) return refusal(mail.refuses.data);
        const [head = '', ...body] = raw.split('\r\n\r\n');
        const headers = head.replaceAll(/\r\n[ \t]+/g, ' ');
        mails.push({
          from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
          to: envelope.rcptTo.map(({ address }) => address),
          headers,
          body: decode(body.join('\r\n\r\n'), /quoted-printable/i.test(headers)),
          messageId: /^message-id: *(.*)$/im.exec(headers)?.[1] ?? '',
        });
        return null;
      };
      // oxlint-disable-next-line promise/no-callback-in-promise -- the library's interface
      void take().then(done);
    },
  });
  server.on('error', () => {});
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const { port } = server.server.address() as AddressInfo;
  const mail: MailServer = {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    refuses: {},
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return mail;
}

function decode(body: string, isQuoted: boolean): string {
  if (!isQuoted) return body;
  const bytes = body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
