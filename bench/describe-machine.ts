import { availableParallelism, cpus, totalmem } from 'node:os';
import { imageEnvironment } from './image-environment.ts';

/** Describes the machine in one line. */
export function describeMachine(postgresVersion: string): string {
  const gib = Math.round(totalmem() / 2 ** 30);
  const { LD_PRELOAD } = imageEnvironment();
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  return (
    `${availableParallelism()} cores (${model}), ${gib} GiB, ${process.platform}, Node ${process.versions.node}, ` +
    `Postgres ${postgresVersion}, fsync and synchronous_commit on, ${LD_PRELOAD ?? "not the image's allocator"}`
  );
}
