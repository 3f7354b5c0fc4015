import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
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
      await rename(unfinished, path);
      // The name is on the disk only then.
      const folder = await open(dirname(path), 'r');
      try {
        await folder.sync();
      } finally {
        await folder.close();
      }
    },
    read: (name) => readFile(pathOf(name)).catch(unlessMissing('ENOENT')),
  };
}

function bucketStore(base: string): ArchiveStore {
  const [bucket = '', ...folders] = base.slice('gs://'.length).split('/');
  const fileOf = async (name: string) => {
    const { Storage } = await import('@google-cloud/storage');
    return new Storage().bucket(bucket).file([...folders, name].join('/'));
  };
  return {
    urlOf: (name) => `${base}/${name}`,
    async write(name, bytes) {
      // One request writes a file of some MB. The bucket compares its CRC32C.
      await (await fileOf(name)).save(bytes, { resumable: false, validation: 'crc32c' });
    },
    async read(name) {
      const file = await fileOf(name);
      return file.download().then(([bytes]) => bytes, unlessMissing(404));
    },
  };
}

function unlessMissing(code: string | number): (error: unknown) => undefined {
  return (error) => {
    if ((error as { code?: unknown }).code !== code) throw error;
    return undefined;
  };
}
