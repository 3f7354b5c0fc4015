import type { Pool } from 'pg';
import type { Credentials, Registry } from '../../core/domain/provider.ts';
import type { AllowedHosts } from '../../core/egress/allowed-hosts.ts';
import type { OrderFeed } from '../../core/live/order-feed.ts';
import type { BoardFeed } from '../../core/orders/board-feed.ts';
import type { Now } from '../../core/postgres/database-clock.ts';
import type { RetranslateDeps } from '../../core/replay/retranslate.ts';
import type { SpillState } from '../../core/spill/spill-webhook.ts';
import type { OidcSettings } from '../console/oidc-client.ts';
import type { Readiness } from '../health.ts';
import type { JudgeSlowly } from '../throttle-failures.ts';
import type { Identify } from './identify.ts';
import type { RenderMetrics } from './metrics-route.ts';

export type OperatorDeps = {
  identify: Identify;
  /** Has whoever guesses judged slowly. */
  judge: JudgeSlowly;
  /** OPERATOR_TOKEN, of which a session knows that it was opened by it. */
  operatorToken: string | undefined;
  /** CONSOLE_URL, where it is not PUBLIC_URL at which people open the console. */
  consoleUrl: string | undefined;
  /** Undefined where nobody signs in by OIDC. */
  oidc: OidcSettings | undefined;
  pool: Pool;
  /** The time by Postgres's clock. */
  now: Now;
  translating: RetranslateDeps;
  registry: Registry;
  credentialsFor: (integration: string) => Credentials;
  /** Asks POS systems. */
  posFetch: typeof fetch;
  allowedHosts: AllowedHosts;
  /** Seconds for which an unknown POS id may still become ours. */
  parkTtlS: number;
  follow: OrderFeed['follow'];
  watch: BoardFeed['watch'];
  metrics: RenderMetrics;
  readiness: () => Readiness;
  spillState: () => SpillState;
  /** Signals work to the workers of this process. */
  wake(): void;
};
