#!/usr/bin/env bash
# Creates what Expediter needs on Google Cloud: topics, subscriptions, service accounts with the least rights, Postgres,
# secrets, and a repository for images. It does not change what already exists, so it can be run again at any time.
#
#   PROJECT=my-project REGION=europe-west1 deploy/google-cloud/set-up.sh [--dry-run]
#
# Also read from the environment:
#   PUBLIC_URL       the public URL of the service (its address on Cloud Run)
#   ORDER_TOPIC      the topic of the platform's orderPlaced (order-placed); projects/…/topics/… if in another project
#   ORDER_FILTER     which messages of ORDER_TOPIC are for this installation (all); it cannot be changed later
#   ORDER_API_TOKEN  the bearer token for the platform's GraphQL; without it, its secret is not created
#   SQL_TIER         the size of Postgres (db-custom-2-7680: 2 cores, 7.5 GiB)
#   SQL_HA           regional (a standby in another zone, the default) or zonal
set -euo pipefail

if [ "${1-}" = --dry-run ]; then dry_run=yes; else dry_run=; fi
if [ -n "${1-}" ] && [ -z "$dry_run" ]; then
  echo "usage: PROJECT=… REGION=… $0 [--dry-run]" >&2
  exit 2
fi
: "${PROJECT:?is not set: the id of the Google Cloud project, such as my-project}"
: "${REGION:?is not set: a region, such as europe-west1}"
order_topic=${ORDER_TOPIC:-order-placed}
dead_letter=expediter-dead-letter
spill=webhook-spill
drain=webhook-spill-drain
spill_dead_letter=webhook-spill-dead-letter
service=expediter@$PROJECT.iam.gserviceaccount.com
migrator=expediter-migrate@$PROJECT.iam.gserviceaccount.com
pusher=expediter-push@$PROJECT.iam.gserviceaccount.com
export CLOUDSDK_CORE_PROJECT=$PROJECT CLOUDSDK_CORE_DISABLE_PROMPTS=1

say() { printf '%s\n' "$*"; }
look() { gcloud "$@" --format=none >/dev/null 2>&1; }
# Prints and runs a gcloud command that changes something. A dry run only prints it.
change() {
  say "+ gcloud $*"
  if [ -n "$dry_run" ]; then return; fi
  gcloud "$@" --quiet --format=none
}
# Creates a resource if it is missing. $1: its name, $2…: the command that describes it, then --, then how to create it.
ensure() {
  local what=$1 probe=()
  shift
  while [ "$1" != -- ]; do
    probe+=("$1")
    shift
  done
  shift
  if look "${probe[@]}"; then
    say "= $what is there"
    return
  fi
  change "$@"
}
# Creates the secret $1 from the output of the command $2, unless the secret has a version.
ensure_secret() {
  if look secrets versions describe latest --secret="$1"; then
    say "= secret $1 is there"
    return
  fi
  if ! look secrets describe "$1"; then change secrets create "$1" --replication-policy=automatic; fi
  if [ -n "$dry_run" ]; then
    change secrets versions add "$1" --data-file=-
  else
    "$2" | change secrets versions add "$1" --data-file=-
  fi
}

# Creates the dead-letter topic $1, and its subscription $2, which stores messages for a week.
ensure_dead_letter() {
  ensure "topic $1" pubsub topics describe "$1" -- pubsub topics create "$1"
  ensure "subscription $2" pubsub subscriptions describe "$2" -- \
    pubsub subscriptions create "$2" --topic="$1" --expiration-period=never --message-retention-duration=7d
}
# Allows Pub/Sub to move messages that were delivered too often from the subscription $1 to the topic $2.
let_move() {
  change pubsub topics add-iam-policy-binding "$2" --member="$google_pubsub" --role=roles/pubsub.publisher
  change pubsub subscriptions add-iam-policy-binding "$1" --member="$google_pubsub" --role=roles/pubsub.subscriber
}

say "# What is used"
change services enable artifactregistry.googleapis.com iam.googleapis.com pubsub.googleapis.com run.googleapis.com \
  secretmanager.googleapis.com sqladmin.googleapis.com
number=$(gcloud projects describe "$PROJECT" --format='value(projectNumber)')
public_url=${PUBLIC_URL:-https://expediter-$number.$REGION.run.app}
google_pubsub=serviceAccount:service-$number@gcp-sa-pubsub.iam.gserviceaccount.com

say "# Who it is"
ensure "account $service" iam service-accounts describe "$service" -- \
  iam service-accounts create expediter --display-name='Expediter, the service'
ensure "account $migrator" iam service-accounts describe "$migrator" -- \
  iam service-accounts create expediter-migrate --display-name='Expediter, who migrates its schema'
ensure "account $pusher" iam service-accounts describe "$pusher" -- \
  iam service-accounts create expediter-push --display-name='Expediter, who pushes to it'
for account in "$service" "$migrator"; do
  change projects add-iam-policy-binding "$PROJECT" --member="serviceAccount:$account" --role=roles/cloudsql.client \
    --condition=None
done
# Pub/Sub signs its pushes as this account. In projects from before April 2021, it needs this role for that.
change iam service-accounts add-iam-policy-binding "$pusher" --member="$google_pubsub" \
  --role=roles/iam.serviceAccountTokenCreator

say "# What the service publishes: live messages, the availability of kitchens, what needs a person"
# A topic has no order of its own. Make each subscription with --enable-message-ordering.
for topic in order-status kitchen-availability expediter-attention; do
  ensure "topic $topic" pubsub topics describe "$topic" -- pubsub topics create "$topic"
  change pubsub topics add-iam-policy-binding "$topic" --member="serviceAccount:$service" --role=roles/pubsub.publisher
done

say "# Signals"
case $order_topic in
projects/*) say "= topic $order_topic is somebody else's" ;;
*) ensure "topic $order_topic" pubsub topics describe "$order_topic" -- pubsub topics create "$order_topic" ;;
esac
ensure_dead_letter "$dead_letter" "$dead_letter"
# A signal that could not be recorded is repeated for some three hours. Then it waits in the dead letter for a person.
ensure 'subscription expediter-orders' pubsub subscriptions describe expediter-orders -- \
  pubsub subscriptions create expediter-orders --topic="$order_topic" --push-endpoint="$public_url/pubsub/push" \
  --push-auth-service-account="$pusher" --push-auth-token-audience="$public_url/pubsub/push" --ack-deadline=60 \
  --min-retry-delay=5s --max-retry-delay=120s --dead-letter-topic="$dead_letter" --max-delivery-attempts=100 \
  --message-retention-duration=7d --expiration-period=never ${ORDER_FILTER:+"--message-filter=$ORDER_FILTER"}
let_move expediter-orders "$dead_letter"

say "# What \`expediter recover\` reads after a restore of Postgres: nobody else pulls from these"
for topic in "$order_topic" order-status; do
  name=${topic##*/}-replay
  filter=
  if [ "$topic" = "$order_topic" ]; then filter=${ORDER_FILTER-}; fi
  ensure "subscription $name" pubsub subscriptions describe "$name" -- \
    pubsub subscriptions create "$name" --topic="$topic" --ack-deadline=10 --message-retention-duration=7d \
    --retain-acked-messages --expiration-period=never ${filter:+"--message-filter=$filter"}
done

say "# Webhooks while Postgres is away"
ensure "topic $spill" pubsub topics describe "$spill" -- pubsub topics create "$spill"
ensure_dead_letter "$spill_dead_letter" "$spill_dead_letter-drain"
# The service pulls nothing while Postgres is down. So only messages that no key can decrypt use up their attempts, in
# some 16 hours.
ensure "subscription $drain" pubsub subscriptions describe "$drain" -- \
  pubsub subscriptions create "$drain" --topic="$spill" --ack-deadline=60 --min-retry-delay=10s \
  --max-retry-delay=600s --dead-letter-topic="$spill_dead_letter" --max-delivery-attempts=100 \
  --message-retention-duration=7d --expiration-period=never
let_move "$drain" "$spill_dead_letter"
change pubsub topics add-iam-policy-binding "$spill" --member="serviceAccount:$service" --role=roles/pubsub.publisher
# The role viewer is for `expediter doctor`, which checks the settings of the subscription.
for role in subscriber viewer; do
  change pubsub subscriptions add-iam-policy-binding "$drain" --member="serviceAccount:$service" \
    --role="roles/pubsub.$role"
done

say "# Postgres: takes some ten minutes the first time"
ensure 'instance expediter' sql instances describe expediter -- \
  sql instances create expediter --database-version=POSTGRES_17 --edition=enterprise \
  --tier="${SQL_TIER:-db-custom-2-7680}" --region="$REGION" --availability-type="${SQL_HA:-regional}" \
  --storage-size=50 --storage-auto-increase --backup --backup-start-time=03:00 --retained-backups-count=14 \
  --enable-point-in-time-recovery --retained-transaction-log-days=7 --ssl-mode=ENCRYPTED_ONLY --deletion-protection \
  --database-flags=max_connections=200
ensure 'database expediter' sql databases describe expediter --instance=expediter -- \
  sql databases create expediter --instance=expediter

say "# Secrets: none is printed"
user=
password=
flags=
trap 'rm -f "$flags"' EXIT
database_url() {
  printf 'postgres://%s:%s@localhost/expediter?host=/cloudsql/%s:%s:expediter' "$user" "$password" "$PROJECT" "$REGION"
}
# Gives the Postgres user $1 a new password. If the user does not exist: $2 = create creates it, $2 = leave does not.
new_password() {
  user=$1
  password=$(openssl rand -hex 24)
  # Every user of this machine can see the arguments of a program, but not this file.
  rm -f "$flags"
  flags=$(umask 077 && mktemp)
  printf -- '--password: "%s"\n' "$password" >"$flags"
  # If the user exists, its password is unknown, so it is set to the new one.
  if gcloud sql users list --instance=expediter --format='value(name)' 2>/dev/null | grep -qx "$user"; then
    change sql users set-password "$user" --instance=expediter --flags-file="$flags"
  elif [ "$2" = create ]; then
    change sql users create "$user" --instance=expediter --flags-file="$flags"
  fi
}
settings_key() { printf '%s:%s' "$(date +%Y-%m)" "$(openssl rand -base64 32)"; }
operator_token() { openssl rand -hex 32 | tr -d '\n'; }
order_api_token() { printf %s "$ORDER_API_TOKEN"; }
# There are two roles. One owns the tables and migrates. The other is the service's and has only the rights that it
# needs. `gcloud` gives users almost all rights, so `expediter migrate` creates the role of the service.
if look secrets versions describe latest --secret=expediter-owner-database-url; then
  say '= secret expediter-owner-database-url is there'
elif look secrets versions describe latest --secret=expediter-database-url; then
  say '! the service owns its tables: docs/deploy.md#two-roles says how it gets a role of its own'
else
  new_password expediter_owner create
  ensure_secret expediter-owner-database-url database_url
fi
if look secrets versions describe latest --secret=expediter-database-url; then
  say '= secret expediter-database-url is there'
else
  new_password expediter leave
  ensure_secret expediter-database-url database_url
fi
ensure_secret expediter-settings-key settings_key
ensure_secret expediter-operator-token operator_token
if [ -n "${ORDER_API_TOKEN-}" ]; then
  ensure_secret expediter-order-api-token order_api_token
elif ! look secrets versions describe latest --secret=expediter-order-api-token; then
  say '! expediter-order-api-token is missing: run this again with ORDER_API_TOKEN set'
fi
# Allows the account $1 to read the secrets $2…
let_read() {
  local account=$1 secret
  shift
  for secret in "$@"; do
    if [ -n "$dry_run" ] || look secrets describe "expediter-$secret"; then
      change secrets add-iam-policy-binding "expediter-$secret" --member="serviceAccount:$account" \
        --role=roles/secretmanager.secretAccessor
    fi
  done
}
let_read "$service" database-url settings-key operator-token order-api-token
let_read "$migrator" database-url owner-database-url

say "# Images"
ensure 'repository expediter' artifacts repositories describe expediter --location="$REGION" -- \
  artifacts repositories create expediter --repository-format=docker --location="$REGION"

say "# Logs: Cloud Run writes the URL of each request, and in a webhook's, and in some members', is a token"
excluded=$(gcloud logging sinks describe _Default --format='value(exclusions.name)' 2>/dev/null || true)
exclude() {
  if [[ $excluded == *"expediter-$1"* ]]; then
    say "= exclusion expediter-$1 is there"
  else
    change logging sinks update _Default --add-exclusion="name=expediter-$1,filter=\
log_id(\"run.googleapis.com/requests\") AND httpRequest.requestUrl:\"$2\""
  fi
}
exclude webhooks /webhook/
exclude follow /follow
exclude signals /signal
exclude answers /answer/

cat <<END

export PROJECT=$PROJECT REGION=$REGION PUBLIC_URL=$public_url
export IMAGE=$REGION-docker.pkg.dev/$PROJECT/expediter/expediter:1.0.0
END
