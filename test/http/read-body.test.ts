import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readBody } from '../../src/http/read-body.ts';

describe('readBody', () => {
  // In words of 64 bytes, for which every chunk counts at the least.
  const bytes = (words: string): Buffer => Buffer.from(words.replaceAll(/./g, (word) => word.repeat(64)));

  it.each([
    ['an empty body', [], '', false],
    ['chunks up to the limit completely', ['12345', '67890'], '1234567890', false],
    ['only the beginning of a body over the limit', ['12345', '678901'], '1234', true],
    ['only the beginning of a chunk far over the limit', ['123456789012345'], '1234', true],
    ['a body far over the limit to its end', ['12345', '678901', '23', '45'], '1234', true],
  ])('reads %s', async (_name, chunks, words, truncated) => {
    const { body, truncated: cut } = await readBody(Readable.from(chunks.map(bytes)), 640, { keep: 256 });
    expect(body.toString()).toBe(bytes(words).toString());
    expect(cut).toBe(truncated);
  });

  it('counts a chunk of one byte as 64 bytes', async () => {
    const crumbs = (count: number): Readable => Readable.from(Array.from({ length: count }, () => Buffer.from('x')));
    expect(await readBody(crumbs(10), 640)).toEqual({ body: Buffer.from('x'.repeat(10)), truncated: false });
    expect(await readBody(crumbs(11), 640)).toEqual({ body: Buffer.from('x'.repeat(11)), truncated: true });
  });

  it('joins chunks of any size in their order', async () => {
    const sizes = [1, 40_000, 3, 70_000, 500, 2, 32_768, 32_767, 9];
    const chunks = sizes.map((size, nth) => Buffer.alloc(size, nth + 1));
    const { body } = await readBody(Readable.from(chunks), 2 ** 20);
    expect(body.equals(Buffer.concat(chunks))).toBe(true);
    const large = Buffer.alloc(50_000);
    expect((await readBody(Readable.from([large]), 2 ** 20)).body.buffer).toBe(large.buffer);
  });

  it('keeps no more than the limit', async () => {
    const { body } = await readBody(Readable.from([Buffer.alloc(20)]), 10);
    expect(body).toHaveLength(10);
  });

  it('stops reading at twice the limit', async () => {
    let given = 0;
    const endless = new Readable({
      highWaterMark: 1,
      read() {
        given += 320;
        this.push(Buffer.alloc(320));
      },
    });
    expect(await readBody(endless, 640, { keep: 256 })).toMatchObject({ truncated: true });
    expect(given).toBeLessThan(2_560);
    endless.destroy();
  });

  it('calls onBytes with the size of each chunk until the limit', async () => {
    const told: number[] = [];
    const stream = Readable.from(['12345', '678901', '23'].map(bytes));
    await readBody(stream, 640, { onBytes: (count) => told.push(count) });
    expect(told).toEqual([320, 384]);
  });

  it('rejects if onBytes throws', async () => {
    const onBytes = (): never => {
      throw new Error('no room');
    };
    await expect(readBody(Readable.from([Buffer.alloc(5)]), 10, { onBytes })).rejects.toThrow('no room');
  });

  it('ignores an error of the stream after its end', async () => {
    const stream = new PassThrough();
    const reading = readBody(stream, 10);
    stream.end('123');
    await reading;
    expect(() => stream.emit('error', new Error('late'))).not.toThrow();
  });

  it('rejects if the sender leaves before the end', async () => {
    const left = new PassThrough();
    const reading = readBody(left, 10);
    left.write('123');
    left.destroy();
    await expect(reading).rejects.toThrow('the sender left before the body ended');

    const broken = new PassThrough();
    const failing = readBody(broken, 10);
    broken.destroy(new Error('reset'));
    await expect(failing).rejects.toThrow('reset');

    await expect(readBody(left, 10)).rejects.toThrow('the sender left');
  });
});
