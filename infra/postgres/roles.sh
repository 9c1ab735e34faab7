#!/bin/sh
# Run once by the image of Postgres on an empty volume: a role and a database for each service.
set -eu
for service in generation computation crypto witness keyshare1; do
    # Secrets of an earlier release have none for the last two.
    password=$(printenv "$(echo "$service" | tr '[:lower:]' '[:upper:]')_PASSWORD") || continue
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="${POSTGRES_USER:-postgres}" \
        --set=name="$service" --set=password="$password" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE ALL ON DATABASE :"name" FROM PUBLIC;
SQL
done
