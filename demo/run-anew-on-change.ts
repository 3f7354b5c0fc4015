import { fileURLToPath } from 'node:url';
import buildConsole from '../scripts/build-console.ts';
import { onChange } from './on-change.ts';
import { runService, type RunService, type Service } from './run-service.ts';

const SRC = fileURLToPath(new URL('../src', import.meta.url));
const CONSOLE = fileURLToPath(new URL('../console', import.meta.url));
/** Time to drain, longer than the load balancer takes to notice. */
const DRAIN_DELAY_MS = '600';

/**
 * Runs the service, and replaces it at each change of `src`. The old process serves until the new one is ready, or goes
 * on if it never is. A change of `console` rebuilds the page, which any process then serves.
 * @param about.print gets a line for each change and its result
 */
export async function runAnewOnChange(
  about: RunService & { print: (line: string) => void },
): Promise<Pick<Service, 'url' | 'operatorUrl' | 'pid' | 'stop'>> {
  const { signal, print } = about;
  const start = async (): Promise<Service> => {
    const started = await runService({ ...about, env: { ...about.env, DRAIN_DELAY_MS } });
    void started.ended.then((how) => {
      if (started === service && !signal.aborted) print(`the service ${how}; the next change starts it anew`);
    });
    return started;
  };
  let service = await start();

  const unlessItFails = async (doing: Promise<void>): Promise<void> => {
    await doing.catch((error: Error) => {
      if (!signal.aborted) print(`${error.message}\nWhat ran before runs on.`);
    });
  };
  const restart = async (file: string): Promise<void> => {
    print(`src/${file} has changed: the service starts anew`);
    const before = service;
    service = await start();
    print(`process ${service.pid} serves`);
    await before.stop();
  };
  const rebuild = async (file: string): Promise<void> => {
    print(`console/${file} has changed: it is built anew`);
    await buildConsole();
    print('the console is built: reload its page');
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
