#!/bin/sh
# Backups of the database expediter by pg_dump, as the superuser:
#   backup.sh               dumps whenever the newest dump is older than BACKUP_EVERY_H hours, for ever
#   backup.sh now           dumps once, then deletes dumps older than BACKUP_KEEP_DAYS days
#   backup.sh check         fails if the newest dump is an hour too old
#   backup.sh restore FILE  replaces the database by a dump. The database until now stays, under another name
set -eu
folder=$BACKUP_FOLDER
every_min=$((BACKUP_EVERY_H * 60))
export PGUSER=postgres

# Whether a dump is younger than $1 minutes.
is_younger() { find "$folder" -name 'expediter-*.dump' -mmin "-$1" | grep -q .; }

# An incomplete dump has another name, and nothing is deleted before a new dump is complete.
dump() {
  file=$folder/expediter-$(date -u +%Y-%m-%dT%H%M%SZ).dump
  pg_dump --format=custom --file="$file.part" expediter && mv "$file.part" "$file" || return 1
  echo "wrote $file"
  find "$folder" -name 'expediter-*.dump' -mmin "+$((BACKUP_KEEP_DAYS * 1440))" -delete
  find "$folder" -name 'expediter-*.part' -mmin +1440 -delete
}

# Restores into a new database first, so that a damaged dump changes nothing.
restore() {
  before=expediter_before_$(date -u +%Y%m%d%H%M%S)
  dropdb --if-exists expediter_restored
  createdb --owner=expediter_owner --encoding=UTF8 --template=template0 expediter_restored
  pg_restore --exit-on-error --dbname=expediter_restored "$folder/$1"
  psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --single-transaction --dbname=postgres \
    --command="ALTER DATABASE expediter RENAME TO $before" \
    --command='ALTER DATABASE expediter_restored RENAME TO expediter'
  echo "restored $1. The database until now is $before. Next: expediter migrate"
}

case ${1-} in
now) dump ;;
check) is_younger $((every_min + 60)) ;;
restore) restore "${2:?the name of a dump}" ;;
'')
  # As process 1, a shell ignores SIGTERM unless it has a trap, and only `wait` ends at once.
  trap exit TERM
  while :; do
    {
      is_younger "$every_min" || dump || echo 'The backup failed. Next attempt in five minutes.' >&2
      sleep 300
    } &
    wait
  done
  ;;
*)
  echo "usage: $0 [now | check | restore FILE]" >&2
  exit 2
  ;;
esac
