#!/bin/sh
# As the image of Postgres: the first start makes the cluster and runs the scripts of /docker-entrypoint-initdb.d.
set -eu
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  : "${POSTGRES_PASSWORD:?is required}"
  initdb --auth-local=trust --auth-host=scram-sha-256 >/dev/null
  pg_ctl start --wait --options='-c listen_addresses=' >/dev/null
  for script in /docker-entrypoint-initdb.d/*.sh; do sh "$script"; done
  pg_ctl stop --mode=fast --wait >/dev/null
fi
exec "$@"
