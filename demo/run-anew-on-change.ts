import { fileURLToPath } from 'node:url';
import buildConsole from '../scripts/build-console.ts';
import { onChange } from './on-change.ts';
import { runService, type RunService, type Service } from './run-service.ts';

const SRC = fileURLToPath(new URL('../src', import.meta.url));
const CONSOLE = fileURLToPath(new URL('../console', import.meta.url));
/** Longer than the load balancer takes to find out who is ready. */
const DRAIN_DELAY_MS = '600';

/**
 * Runs the service, and another one in its place at each change of `src`. The one before serves until the next is ready,
 * and goes on where that never gets ready. A change of `console` builds the page anew, which any service then shows.
 * @param about.tell hears of each change and of what became of it
 */
export async function runAnewOnChange(
  about: RunService & { tell: (line: string) => void },
): Promise<Pick<Service, 'url' | 'pid' | 'stop'>> {
  const { signal, tell } = about;
  const start = async (): Promise<Service> => {
    const started = await runService({ ...about, env: { ...about.env, DRAIN_DELAY_MS } });
    void started.ended.then((how) => {
      if (started === service && !signal.aborted) tell(`the service ${how}; the next change starts it anew`);
    });
    return started;
  };
  let service = await start();

  const unlessItFails = async (doing: Promise<void>): Promise<void> => {
    await doing.catch((error: Error) => {
      if (!signal.aborted) tell(`${error.message}\nWhat ran before runs on.`);
    });
  };
  const restart = async (file: string): Promise<void> => {
    tell(`src/${file} has changed: the service starts anew`);
    const before = service;
    service = await start();
    tell(`process ${service.pid} serves`);
    await before.stop();
  };
  const rebuild = async (file: string): Promise<void> => {
    tell(`console/${file} has changed: it is built anew`);
    await buildConsole();
    tell('the console is built: reload its page');
  };
  const endings = [
    onChange(SRC, (file) => unlessItFails(restart(file))),
    onChange(CONSOLE, (file) => unlessItFails(rebuild(file))),
  ];
  return {
    get url() {
      return service.url;
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
