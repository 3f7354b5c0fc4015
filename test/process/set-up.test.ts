/** The script for Google Cloud against a `gcloud` that remembers what it was told to make, and makes nothing. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readConfigOf } from '../../src/config/config.ts';
import { runProgram, type Ended } from '../../world/processes/run-program.ts';

const SCRIPT = fileURLToPath(new URL('../../deploy/google-cloud/set-up.sh', import.meta.url));

/** Looks at what was made, or makes it; `calls` has every call with what came on standard input and in a file of flags. */
const GCLOUD = `#!/bin/sh
for word; do
  case $word in
  --quiet | --format=none) continue ;;
  --data-file=-) input=$(cat && echo .) ;;
  --flags-file=*) flags=$(cat "\${word#*=}") ;;
  --secret=*) name=\${word#*=} ;;
  esac
  words="$words$word\t"
  case $verb:$word in
  :create | :describe | :list | :add | :update) verb=$word ;;
  :*) group="\${group:+$group }$word" ;;
  *) name=\${name:-\${word%%@*}} ;;
  esac
done
printf '%s\\036%s\\036%s\\035' "$words" "\${input%.}" "$flags" >>"$STATE-calls"
made() { grep -qxF "$group $name" "$STATE-made" 2>/dev/null; }
case $group:$verb in
projects:describe) echo 123456789 ;;
'logging sinks:describe') if made; then echo 'expediter-webhooks;expediter-follow;expediter-signals;expediter-answers'; fi ;;
*:list) (echo sql users postgres && cat "$STATE-made") | sed -n "s/^$group //p" ;;
*:describe) made ;;
*:create) ! made && echo "$group $name" >>"$STATE-made" ;;
*:?*) echo "$group $name" >>"$STATE-made" ;;
esac
`;
const OPENSSL = `#!/bin/sh
case "$*" in *-base64*) echo ${Buffer.alloc(32, 7).toString('base64')} ;; *) od -An -N12 -tx1 /dev/urandom | tr -d ' ' ;; esac
`;

type Call = { words: string[]; input: string; flags: string };

let folder: string;
function makeFolder(): void {
  folder = mkdtempSync(join(tmpdir(), 'set-up-'));
  writeFileSync(join(folder, 'gcloud'), GCLOUD, { mode: 0o755 });
  writeFileSync(join(folder, 'openssl'), OPENSSL, { mode: 0o755 });
}
const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });

function setUp(args: string[] = [], env: Record<string, string> = {}): Promise<Ended> {
  return runProgram('bash', [SCRIPT, ...args], {
    PATH: `${folder}:${process.env['PATH']}`,
    STATE: join(folder, 'state'),
    TMPDIR: folder,
    PROJECT: 'my-project',
    REGION: 'europe-west1',
    ORDER_API_TOKEN: 'platform-token',
    ...env,
  });
}

function calls(): Call[] {
  const all = readFileSync(join(folder, 'state-calls'), 'utf8').split('\u001d').slice(0, -1);
  return all.map((call) => {
    const [words = '', input = '', flags = ''] = call.split('\u001e');
    return { words: words.split('\t').slice(0, -1), input, flags };
  });
}

/** The calls that begin with these words. */
function called(...words: string[]): Call[] {
  return calls().filter((call) => words.every((word, nth) => call.words[nth] === word));
}

const changes = (): Call[] => calls().filter(({ words }) => !words.some((word) => ['describe', 'list'].includes(word)));

describe('deploy/google-cloud/set-up.sh', () => {
  let ended: Ended;
  beforeAll(async () => {
    makeFolder();
    ended = await setUp();
  });
  afterAll(removeFolder);

  it('creates the subscriptions, and prints PROJECT, REGION and PUBLIC_URL for the next steps', () => {
    const { code, out, error } = ended;
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(out).toContain('export PROJECT=my-project REGION=europe-west1');
    expect(out).toContain('PUBLIC_URL=https://expediter-123456789.europe-west1.run.app');
    const [subscription] = called('pubsub', 'subscriptions', 'create', 'expediter-orders');
    expect(subscription?.words).toEqual(
      expect.arrayContaining([
        '--topic=order-placed',
        '--push-endpoint=https://expediter-123456789.europe-west1.run.app/pubsub/push',
        '--push-auth-token-audience=https://expediter-123456789.europe-west1.run.app/pubsub/push',
        '--push-auth-service-account=expediter-push@my-project.iam.gserviceaccount.com',
        '--ack-deadline=60',
        '--dead-letter-topic=expediter-dead-letter',
        '--expiration-period=never',
        '--message-retention-duration=7d',
      ]),
    );
    for (const topic of ['order-placed', 'order-status']) {
      const [replay] = called('pubsub', 'subscriptions', 'create', `${topic}-replay`);
      expect(replay?.words).toEqual(expect.arrayContaining([`--topic=${topic}`, '--retain-acked-messages']));
    }
  });

  it('keeps URLs with tokens out of the request log', () => {
    const excluded = called('logging', 'sinks', 'update', '_Default').map(({ words }) => words.at(-1));
    expect(excluded).toEqual([
      expect.stringMatching(/^--add-exclusion=name=expediter-webhooks,filter=.+ httpRequest.requestUrl:"\/webhook\/"$/),
      expect.stringMatching(/^--add-exclusion=name=expediter-follow,filter=.+ httpRequest.requestUrl:"\/follow"$/),
      expect.stringMatching(/^--add-exclusion=name=expediter-signals,filter=.+ httpRequest.requestUrl:"\/signal"$/),
      expect.stringMatching(/^--add-exclusion=name=expediter-answers,filter=.+ httpRequest.requestUrl:"\/answer\/"$/),
    ]);
  });

  it("creates the spill's topic and subscription, and its dead letter topic", () => {
    const [drain] = called('pubsub', 'subscriptions', 'create', 'webhook-spill-drain');
    expect(drain?.words.slice(4).sort()).toEqual([
      '--ack-deadline=60',
      '--dead-letter-topic=webhook-spill-dead-letter',
      '--expiration-period=never',
      '--max-delivery-attempts=100',
      '--max-retry-delay=600s',
      '--message-retention-duration=7d',
      '--min-retry-delay=10s',
      '--topic=webhook-spill',
    ]);
    const [dead] = called('pubsub', 'subscriptions', 'create', 'webhook-spill-dead-letter-drain');
    expect(dead?.words).toEqual(
      expect.arrayContaining(['--topic=webhook-spill-dead-letter', '--message-retention-duration=7d']),
    );
    const topics = called('pubsub', 'topics', 'create').map(({ words }) => words[3]);
    expect(topics).toEqual(expect.arrayContaining(['webhook-spill', 'webhook-spill-dead-letter']));
  });

  it('gives the service exactly the roles that it needs', () => {
    const service = '--member=serviceAccount:expediter@my-project.iam.gserviceaccount.com';
    const given = calls()
      .filter(({ words }) => words.includes(service))
      .map(({ words }) => {
        const on = words[words.indexOf('add-iam-policy-binding') + 1];
        return `${on} ${words.find((word) => word.startsWith('--role='))?.slice(7)}`;
      });
    expect(given.sort()).toEqual([
      'expediter-attention roles/pubsub.publisher',
      'expediter-database-url roles/secretmanager.secretAccessor',
      'expediter-operator-token roles/secretmanager.secretAccessor',
      'expediter-order-api-token roles/secretmanager.secretAccessor',
      'expediter-settings-key roles/secretmanager.secretAccessor',
      'kitchen-availability roles/pubsub.publisher',
      'my-project roles/cloudsql.client',
      'order-status roles/pubsub.publisher',
      'webhook-spill roles/pubsub.publisher',
      'webhook-spill-drain roles/pubsub.subscriber',
      'webhook-spill-drain roles/pubsub.viewer',
    ]);
    const migrator = '--member=serviceAccount:expediter-migrate@my-project.iam.gserviceaccount.com';
    const readBy = (account: string): unknown[] =>
      called('secrets', 'add-iam-policy-binding')
        .filter(({ words }) => words.includes(account))
        .map(({ words }) => words[2]);
    expect(readBy(migrator)).toEqual(['expediter-database-url', 'expediter-owner-database-url']);
    expect(readBy(service)).not.toContain('expediter-owner-database-url');
    const pusher = '--member=serviceAccount:expediter-push@my-project.iam.gserviceaccount.com';
    expect(calls().filter(({ words }) => words.includes(pusher))).toEqual([]);
  });

  it('lets Pub/Sub sign pushes, and move undeliverable messages to the dead letter topic', () => {
    const agent = '--member=serviceAccount:service-123456789@gcp-sa-pubsub.iam.gserviceaccount.com';
    const given = calls().filter(({ words }) => words.includes(agent));
    expect(given.map(({ words }) => words.slice(0, 4).join(' '))).toEqual([
      'iam service-accounts add-iam-policy-binding expediter-push@my-project.iam.gserviceaccount.com',
      'pubsub topics add-iam-policy-binding expediter-dead-letter',
      'pubsub subscriptions add-iam-policy-binding expediter-orders',
      'pubsub topics add-iam-policy-binding webhook-spill-dead-letter',
      'pubsub subscriptions add-iam-policy-binding webhook-spill-drain',
    ]);
  });

  it('creates secrets for the service without showing them on a command line or in its output', () => {
    const { out } = ended;
    const secretOf = (name: string): string => called('secrets', 'versions', 'add', name)[0]?.input ?? '';
    const [DATABASE_URL, OWNER_DATABASE_URL] = [
      secretOf('expediter-database-url'),
      secretOf('expediter-owner-database-url'),
    ];
    // The service's is made by the migration: whom `gcloud` makes may do almost everything.
    expect(called('sql', 'users', 'create').map(({ words }) => words[3])).toEqual(['expediter_owner']);
    const [user] = called('sql', 'users', 'create');
    const password = /^--password: "(.+)"$/.exec(user?.flags ?? '')?.[1] ?? '';
    expect(OWNER_DATABASE_URL).toBe(
      `postgres://expediter_owner:${password}@localhost/expediter?host=/cloudsql/my-project:europe-west1:expediter`,
    );
    const own = /^postgres:\/\/expediter:(\w+)@localhost\/expediter\?host=/.exec(DATABASE_URL)?.[1] ?? '';
    const environment = { DATABASE_URL, OWNER_DATABASE_URL, SETTINGS_KEY: secretOf('expediter-settings-key') };
    const config = readConfigOf(environment, 'DATABASE_URL', 'OWNER_DATABASE_URL', 'SETTINGS_KEY');
    expect(config.SETTINGS_KEY.size).toBe(1);
    expect(secretOf('expediter-order-api-token')).toBe('platform-token');
    expect(password).not.toBe('');
    expect(own).not.toBe('');
    expect(own).not.toBe(password);
    for (const secret of [password, own, Buffer.alloc(32, 7).toString('base64'), 'platform-token']) {
      expect(out).not.toContain(secret);
      expect(calls().filter(({ words }) => words.some((word) => word.includes(secret)))).toEqual([]);
    }
  });

  it('only grants the same rights again when it runs a second time', async () => {
    const first = changes().length;
    const { code, error } = await setUp();
    expect({ code, error }).toEqual({ code: 0, error: '' });
    const again = changes().slice(first);
    expect(again.length).toBeGreaterThan(0);
    for (const { words } of again) {
      expect(words.includes('add-iam-policy-binding') || words[0] === 'services', words.join(' ')).toBe(true);
    }
  });
});

describe('deploy/google-cloud/set-up.sh in other situations', () => {
  beforeEach(makeFolder);
  afterEach(removeFolder);

  it('after an interruption sets another password for a user whose password is lost', async () => {
    const made = ['sql users expediter_owner', 'sql users expediter', 'secrets expediter-owner-database-url'];
    writeFileSync(join(folder, 'state-made'), `${made.join('\n')}\n`);
    expect((await setUp()).code).toBe(0);
    expect(called('sql', 'users', 'create')).toEqual([]);
    for (const [user, secret] of [
      ['expediter_owner', 'expediter-owner-database-url'],
      ['expediter', 'expediter-database-url'],
    ] as const) {
      expect(called('sql', 'users', 'set-password', user)).toHaveLength(1);
      expect(called('secrets', 'versions', 'add', secret)).toHaveLength(1);
    }
  });

  it('does not change an installation with one role, and names the section of docs/deploy.md', async () => {
    writeFileSync(join(folder, 'state-made'), 'sql users expediter\nsecrets versions expediter-database-url\n');
    const { code, out } = await setUp();
    expect(code).toBe(0);
    expect(out).toContain('! the service owns its tables: docs/deploy.md#two-roles');
    expect(called('sql', 'users', 'create')).toEqual([]);
    expect(called('sql', 'users', 'set-password')).toEqual([]);
    expect(called('secrets', 'versions', 'add').map(({ words }) => words[3])).not.toContain('expediter-database-url');
  });

  it('with --dry-run prints all steps, and changes nothing', async () => {
    const { code, out, error } = await setUp(['--dry-run']);
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(changes()).toEqual([]);
    for (const words of ['sql instances create', 'subscriptions create expediter-orders', 'secrets versions add']) {
      expect(out).toContain(words);
    }
  });

  it('does not create the topic of another project, and names a missing token', async () => {
    const env = { ORDER_TOPIC: 'projects/platform/topics/orders', ORDER_API_TOKEN: '' };
    const { code, out } = await setUp([], env);
    expect(code).toBe(0);
    const topics = called('pubsub', 'topics', 'create').map(({ words }) => words[3]);
    const ours = 'order-status kitchen-availability expediter-attention expediter-dead-letter';
    expect(topics.join(' ')).toBe(`${ours} webhook-spill webhook-spill-dead-letter`);
    expect(called('pubsub', 'subscriptions', 'create', 'expediter-orders')[0]?.words).toContain(
      '--topic=projects/platform/topics/orders',
    );
    expect(out).toContain('! expediter-order-api-token is missing');
  });

  it('subscribes with ORDER_FILTER if it is set', async () => {
    const filter = 'NOT attributes.installation = "north"';
    expect((await setUp([], { ORDER_FILTER: filter })).code).toBe(0);
    const words = called('pubsub', 'subscriptions', 'create', 'expediter-orders')[0]?.words;
    expect(words).toContain(`--message-filter=${filter}`);
  });

  it('fails without a project or with an unknown option, and changes nothing', async () => {
    expect(await setUp([], { PROJECT: '' })).toMatchObject({ code: 1, error: expect.stringContaining('my-project') });
    expect(await setUp(['--dryrun'])).toMatchObject({ code: 2, error: expect.stringContaining('usage') });
    expect(() => calls()).toThrow('ENOENT');
  });
});
