import type { FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import { addressOf } from '../../src/http/request.ts';

it.each([
  ['192.0.2.7', '192.0.2.7'],
  ['192.0.2.7:50312', '192.0.2.7'],
  ['[2001:db8::7]:50312', '2001:db8::7'],
  ['[2001:db8::7]', '2001:db8::7'],
  ['2001:db8::7', '2001:db8::7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['unknown', '10.0.0.1'],
  ['192.0.2.7:50312:1', '10.0.0.1'],
])('a sender that a proxy reports as %s has the address %s', (ip, sender) => {
  const raw = { socket: { remoteAddress: '10.0.0.1' } };
  expect(addressOf({ ip, raw } as FastifyRequest)).toBe(sender);
});
