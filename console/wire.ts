/** The operator API's answers as JSON, derived from the server's own schemas. */
import type { z } from 'zod';
import type * as shape from '../src/core/domain/shape-issues.ts';
import type * as order from '../src/core/domain/order.ts';
import type * as check from '../src/core/locations/check-location.ts';
import type * as locations from '../src/core/locations/show-location.ts';
import type * as pause from '../src/core/kitchens/pause-location.ts';
import type * as tokens from '../src/core/locations/webhook-tokens.ts';
import type * as feed from '../src/core/orders/board-feed.ts';
import type * as orders from '../src/core/orders/list-orders.ts';
import type * as story from '../src/core/orders/order-timeline.ts';
import type * as board from '../src/core/orders/read-board.ts';
import type * as search from '../src/core/orders/search.ts';
import type * as scorecards from '../src/core/orders/read-scorecards.ts';
import type * as attention from '../src/core/orders/sample-attention.ts';
import type * as doubt from '../src/core/placements/resolve-doubt.ts';
import type * as retry from '../src/core/placements/retry-placement.ts';
import type * as webhooks from '../src/core/replay/list-webhooks.ts';
import type * as replay from '../src/core/replay/replay-webhook.ts';
import type * as replays from '../src/core/replay/replay-webhooks.ts';
import type * as webhook from '../src/core/replay/show-webhook.ts';
import type * as traffic from '../src/core/traffic/read-traffic.ts';
import type * as answers from '../src/http/operator/answers.ts';
import type * as actions from '../src/core/operators/read-audit.ts';
import type * as operators from '../src/core/operators/operator.ts';
import type * as grants from '../src/core/operators/operator-grants.ts';
import type * as sessions from '../src/core/operators/operator-sessions.ts';
import type * as named from '../src/core/operators/operator-tokens.ts';
import type * as spill from '../src/core/spill/spill-webhook.ts';
import type * as testOrders from '../src/core/test-orders/test-order.ts';
import type * as connect from '../src/core/locations/connect-location.ts';
import type * as settings from '../src/core/locations/describe-settings.ts';
import type * as put from '../src/core/locations/put-location.ts';
import type * as requests from '../src/operators/requests.ts';

/** What a type becomes when it is sent as JSON: a Date is then a string. */
type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { [Key in keyof T]: Wire<T[Key]> }
      : T;
type Answer<Shape extends z.ZodType> = Wire<z.output<Shape>>;
type Request<Shape extends z.ZodType> = Wire<z.input<Shape>>;

export type BoardOrder = Answer<typeof board.BoardOrder>;
export type Attention = Answer<typeof attention.Attention>;
export type BoardCase = Attention['cases'][number];
export type BoardComplete = Answer<typeof feed.BoardComplete>;

export type CanonicalOrder = Answer<typeof order.CanonicalOrder>;
export type ListedOrders = Answer<typeof orders.ListedOrders>;
export type ShownOrder = Answer<typeof story.OrderStory>;
export type Happening = ShownOrder['timeline'][number];
export type Retried = Answer<typeof retry.Retried>;
export type ConcludeCancel = Request<typeof requests.ConcludeCancel>;
export type AnswerChange = Request<typeof requests.AnswerChange>;
export type Resolve = Request<typeof requests.Resolve>;
export type Resolved = Answer<typeof doubt.Resolved>;

export type ListedWebhooks = Answer<typeof webhooks.ListedWebhooks>;
export type ListedWebhook = ListedWebhooks['webhooks'][number];
export type ShownWebhook = Answer<typeof webhook.ShownWebhook>;
export type ShapeIssue = Answer<typeof shape.ShapeIssue>;
export type WebhookOutcome = ListedWebhook['outcome'];
export type Replayed = Answer<typeof replay.Replayed>;
export type ReplayMany = Request<typeof requests.ReplayMany>;
export type ReplayedMany = Answer<typeof replays.ReplayedMany>;

export type ListedLocations = Answer<typeof locations.ListedLocations>;
export type ListedLocation = ListedLocations['locations'][number];
export type ShownLocation = Answer<typeof locations.ShownLocation>;
export type Care = Pick<ShownLocation, 'case' | 'snoozedUntil' | 'notes'>;
export type CheckedLocation = Answer<typeof check.CheckedLocation>;
export type ChangedLocation = Answer<typeof put.ChangedLocation>;
export type LocationChange = ChangedLocation['changes'][number];
export type ConnectedLocation = Answer<typeof connect.ConnectedLocation>;
export type ShownProvider = Answer<typeof settings.ShownProvider>;
export type PlacedTest = Answer<typeof testOrders.PlacedTest>;
export type IssuedToken = Answer<typeof tokens.IssuedToken>;
export type RevokedToken = Answer<typeof tokens.RevokedToken>;
export type Kitchen = ListedLocation['kitchen'];
export type PausedLocation = Answer<typeof pause.PausedLocation>;

export type Role = operators.Role;
export type NeededRole = operators.NeededRole;
export type Right = Answer<typeof operators.Right>;
export type OperatorToken = Answer<typeof named.OperatorToken>;
export type OperatorGrant = Answer<typeof grants.OperatorGrant>;
export type ActiveSession = Answer<typeof sessions.ActiveSession>;
export type OwnSession = ActiveSession & { current: boolean };
export type ListedActions = Answer<typeof actions.ListedActions>;
export type ListedAction = ListedActions['actions'][number];
export type RecordedAction = Answer<typeof actions.RecordedAction>;

export type Scorecards = Answer<typeof scorecards.Scorecards>;
export type Scorecard = Scorecards['scorecards'][number];

export type Traffic = Answer<typeof traffic.ReadTraffic>;
export type SpillAnswer = Answer<typeof spill.SpillAnswer>;
export type Problem = Answer<typeof answers.Problem>;
export type Found = Answer<typeof search.FoundOrders> & Partial<Answer<typeof search.Found>>;
