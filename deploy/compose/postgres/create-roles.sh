#!/bin/sh
# Postgres runs this once, when its volume is empty: the two roles of docs/deploy.md#two-roles, and the database.
set -eu
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres <<'SQL'
\getenv owner_password OWNER_PASSWORD
\getenv service_password SERVICE_PASSWORD
CREATE ROLE expediter_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE expediter LOGIN PASSWORD :'service_password';
CREATE DATABASE expediter OWNER expediter_owner ENCODING 'UTF8' TEMPLATE template0;
SQL
