import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';

it('a test worker ends when its runner is gone, although a timer is running', async () => {
  const worker = fork('setInterval(() => {}, 1_000); process.send("runs");', {
    execPath: process.execPath,
    execArgv: [...process.execArgv, '--eval'],
  });
  onTestFinished(() => void worker.kill('SIGKILL'));
  const ended = once(worker, 'exit');
  await once(worker, 'message');
  worker.disconnect();
  expect(await ended).toEqual([null, 'SIGKILL']);
});
