#!/bin/sh
# Run once by the image of Postgres on an empty volume: a role and a database for each service.
set -eu
for service in generation computation crypto; do
    password=$(printenv "$(echo "$service" | tr '[:lower:]' '[:upper:]')_PASSWORD")
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="${POSTGRES_USER:-postgres}" \
        --set=name="$service" --set=password="$password" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE ALL ON DATABASE :"name" FROM PUBLIC;
SQL
done
