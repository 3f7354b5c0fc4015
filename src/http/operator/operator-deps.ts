import type { Observe } from '../../core/domain/observed.ts';
import type { Registry } from '../../core/domain/provider.ts';
import type { OrderFeed } from '../../core/live/order-feed.ts';
import type { LocationDeps } from '../../core/locations/check-location.ts';
import type { Ways } from '../../core/notices/ways.ts';
import type { BoardFeed } from '../../core/orders/board-feed.ts';
import type { RetranslateDeps } from '../../core/replay/retranslate.ts';
import type { SpillState } from '../../core/spill/spill-webhook.ts';
import type { OidcSettings } from '../../identity/oidc-client.ts';
import type { WaysOut } from '../../operators/live-operations.ts';
import type { Readiness } from '../health.ts';
import type { JudgeSlowly } from '../throttle-failures.ts';
import type { Identify } from './identify.ts';
import type { RenderMetrics } from './metrics-route.ts';

export type OperatorDeps = Omit<LocationDeps, 'decryptSettings'> & {
  env: NodeJS.ProcessEnv;
  /** Whether a request was forwarded by a proxy although TRUSTED_PROXIES is unset. */
  isForwarded(): boolean;
  identify: Identify;
  judge: JudgeSlowly;
  /** OPERATOR_TOKEN. A session that was opened with it ends when OPERATOR_TOKEN changes. */
  operatorToken: string | undefined;
  /** CONSOLE_URL, if the console's URL differs from PUBLIC_URL. */
  consoleUrl: string | undefined;
  /** The variables that say how live messages leave. */
  waysOut: WaysOut;
  /** Undefined if people cannot sign in by OIDC. */
  oidc: OidcSettings | undefined;
  translating: RetranslateDeps;
  registry: Registry;
  ways: Ways;
  follow: OrderFeed['follow'];
  watch: BoardFeed['watch'];
  metrics: RenderMetrics;
  readiness: () => Readiness;
  spillState: () => SpillState;
  observe: Observe;
  wake(): void;
  wakeBoard: BoardFeed['wakeAttention'];
};
