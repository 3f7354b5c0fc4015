import { request, type Agent } from 'node:http';

/** @returns the answer's status as a string; `none`: the connection broke */
export function post(
  url: string,
  agent: Agent,
  { headers, body }: { headers: Record<string, string | number>; body: string },
): Promise<string> {
  return new Promise((answered) => {
    const sent = request(url, { method: 'POST', headers, agent }, (response) => {
      response.resume();
      response.on('end', () => answered(String(response.statusCode)));
    });
    sent.on('error', () => answered('none'));
    sent.end(body);
  });
}
