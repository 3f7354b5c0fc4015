import { request, type Agent } from 'node:http';

export type Posted = { headers: Record<string, string | number>; body: string };

/** @returns the answer's status as a string, or the code of the error, such as ECONNRESET */
export function postWithAgent(url: string, agent: Agent, { headers, body }: Posted): Promise<string> {
  return new Promise((answered) => {
    const sent = request(url, { method: 'POST', headers, agent }, (response) => {
      response.resume();
      response.on('end', () => answered(String(response.statusCode)));
    });
    sent.on('error', (error: NodeJS.ErrnoException) => answered(error.code ?? error.message));
    sent.end(body);
  });
}
