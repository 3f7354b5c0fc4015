import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bucket, File } from '@google-cloud/storage';
import type { ArchiveStore } from './archive.ts';

/**
 * Opens the archive at a URL: `gs://bucket/folder`, with the credentials that Google's libraries find, or
 * `file:///folder`. Google's library is loaded by the first use.
 */
export function archiveStore(url: string): ArchiveStore {
  const base = url.endsWith('/') ? url.slice(0, -1) : url;
  return base.startsWith('gs://') ? bucketStore(base) : folderStore(base);
}

function folderStore(base: string): ArchiveStore {
  const pathOf = (name: string): string => join(fileURLToPath(base), name);
  return {
    urlOf: (name) => `${base}/${name}`,
    async write(name, bytes) {
      const path = pathOf(name);
      await mkdir(dirname(path), { recursive: true });
      const unfinished = `${path}.${randomUUID()}.unfinished`;
      const file = await open(unfinished, 'w');
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      const isThere = await link(unfinished, path).then(() => false, unlessCode(true, 'EEXIST'));
      await rm(unfinished);
      if (isThere) return bytes.equals(await readFile(path));
      // The name is on the disk only then.
      const folder = await open(dirname(path), 'r');
      try {
        await folder.sync();
      } finally {
        await folder.close();
      }
      return true;
    },
    read: (name) => readFile(pathOf(name)).catch(unlessCode(undefined, 'ENOENT')),
  };
}

function bucketStore(base: string): ArchiveStore {
  const [bucket = '', ...folders] = base.slice('gs://'.length).split('/');
  let opened: Promise<Bucket> | undefined;
  const fileOf = async (name: string): Promise<File> => {
    opened ??= import('@google-cloud/storage').then(({ Storage }) => new Storage().bucket(bucket));
    return (await opened).file([...folders, name].join('/'));
  };
  const read = async (name: string): Promise<Buffer | undefined> => {
    const file = await fileOf(name);
    return file.download().then(([bytes]) => bytes, unlessCode(undefined, 404));
  };
  return {
    urlOf: (name) => `${base}/${name}`,
    async write(name, bytes) {
      const file = await fileOf(name);
      // One request writes a file of some MB. The bucket compares its CRC32C. Generation 0: the file must not be there.
      const written = { resumable: false, validation: 'crc32c', preconditionOpts: { ifGenerationMatch: 0 } } as const;
      const isThere = await file.save(bytes, written).then(() => false, unlessCode(true, 412));
      return !isThere || bytes.equals((await read(name)) ?? Buffer.alloc(0));
    },
    read,
  };
}

/** @returns a handler that replaces an error with this code by a value */
function unlessCode<Value>(value: Value, code: string | number): (error: unknown) => Value {
  return (error) => {
    if ((error as { code?: unknown }).code !== code) throw error;
    return value;
  };
}
