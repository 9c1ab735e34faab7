#!/bin/sh
# Creates a role and a database for each service. The Postgres image runs it once on an empty volume. Run it again to
# create missing ones, such as those of a second computation service that was added later.
set -eu
user=${POSTGRES_USER:-postgres}
for service in generation computation crypto witness keyshare1; do
    variable=$(echo "$service" | tr '[:lower:]' '[:upper:]')_PASSWORD
    # Older secrets have no passwords for these two services.
    case $service in
        witness | keyshare1) printenv "$variable" >/dev/null || continue ;;
    esac
    password=$(printenv "$variable")
    known=$(psql --no-psqlrc --quiet --tuples-only --no-align --username="$user" \
        --command="SELECT 1 FROM pg_roles WHERE rolname = '$service'")
    [ -z "$known" ] || continue
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$user" \
        --set=name="$service" --set=password="$password" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE ALL ON DATABASE :"name" FROM PUBLIC;
SQL
done
