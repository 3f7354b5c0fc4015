import { fileURLToPath } from 'node:url';
import buildConsole from '../build/build-console.ts';
import { onChange } from '../../src/cli/on-change.ts';
import { runService, type RunService, type Service } from './run-service.ts';

const SRC = fileURLToPath(new URL('../../src', import.meta.url));
const CONSOLE = fileURLToPath(new URL('../../console', import.meta.url));
/** The drain must be longer than the load balancer needs to notice it. */
const DRAIN_DELAY_MS = '600';

/**
 * Runs the service, and replaces it at each change in `src`. The old process serves until the new process is ready, and
 * stays if that fails. A change in `console` rebuilds the console, which any process then serves.
 * @param about.print gets a line for each change and its result
 */
export async function runAgainOnChange(
  about: RunService & { print: (line: string) => void },
): Promise<Pick<Service, 'url' | 'operatorUrl' | 'pid' | 'stop'>> {
  const { signal, print } = about;
  const start = async (): Promise<Service> => {
    const started = await runService({ ...about, env: { ...about.env, DRAIN_DELAY_MS } });
    void started.ended.then((how) => {
      if (started === service && !signal.aborted) print(`the service ${how}; the next change restarts it`);
    });
    return started;
  };
  let service = await start();

  const unlessItFails = async (doing: Promise<void>): Promise<void> => {
    await doing.catch((error: Error) => {
      if (!signal.aborted) print(`${error.message}\nThe previous version stays in use.`);
    });
  };
  const restart = async (file: string): Promise<void> => {
    print(`src/${file} has changed: the service restarts`);
    const before = service;
    service = await start();
    print(`process ${service.pid} serves`);
    await before.stop();
  };
  const rebuild = async (file: string): Promise<void> => {
    print(`console/${file} has changed: the console is rebuilt`);
    await buildConsole();
    print('the console is rebuilt: reload its page');
  };
  const endings = [
    onChange(SRC, (file) => unlessItFails(restart(file))),
    onChange(CONSOLE, (file) => unlessItFails(rebuild(file))),
  ];
  return {
    get url() {
      return service.url;
    },
    get operatorUrl() {
      return service.operatorUrl;
    },
    get pid() {
      return service.pid;
    },
    async stop() {
      await Promise.all(endings.map((end) => end()));
      await service.stop();
    },
  };
}
