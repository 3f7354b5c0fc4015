import { describeError, perhapsTaken } from '../core/domain/classify-error.ts';
import type { Connection } from '../core/domain/provider.ts';

/** The code of an OAuth authorisation that a person copies from the browser: it is spent by one exchange. */
type WithCode = { authorizationCode?: string | undefined };

/**
 * Connects by OAuth's authorisation code without a page of ours: without a code it says which URL to open, with one it
 * exchanges the code and goes on as `connect` does. What the code brought is kept whatever becomes of the rest.
 * @param by.url the page where the restaurant agrees; without secrets
 * @param by.shown where the code stands then, as in "the page shows it"
 * @param by.exchange returns the settings that the code brings, and what to tell the operator of them
 */
export async function connectByCode<Context extends { settings: WithCode }>(
  context: Context,
  by: {
    url: string;
    shown: string;
    exchange: (code: string) => Promise<{ settings: Partial<Context['settings']>; did: string }>;
    connect: (context: Context) => Promise<Connection>;
  },
): Promise<Connection> {
  const { authorizationCode } = context.settings;
  if (authorizationCode === undefined) {
    return {
      done: [],
      todo: [
        `Let somebody who may decide for the restaurant open this page and agree: ${by.url}`,
        `Put the code into the settings as authorizationCode (${by.shown}), and run expediter provider connect again, ` +
          'within five minutes',
      ],
      unused: true,
    };
  }
  const { settings: granted, did } = await by.exchange(authorizationCode);
  const settings = { ...granted, authorizationCode: undefined };
  try {
    const connected = await by.connect({ ...context, settings: { ...context.settings, ...settings } });
    return { ...connected, done: [did, ...connected.done], settings: { ...settings, ...connected.settings } };
  } catch (error) {
    return {
      done: [did],
      todo: [`Run expediter provider connect again. The rest failed: ${describeError(error)}`],
      settings,
      unused: !perhapsTaken(error, { deduplicates: false }),
    };
  }
}
