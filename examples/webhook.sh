#!/bin/sh
# Creates an endpoint for events and sends a test event to it: webhook.sh PROJECT URL. OPERATOR_KEY is a key with the role developer.
set -eu
api="${TUNDISH_ADMIN_URL:-http://127.0.0.1:8081}/admin/v1/projects/$1/webhooks"
call() { curl -sS --fail-with-body -X POST -H "Authorization: Bearer $OPERATOR_KEY" "$@"; }

endpoint=$(call -H 'Content-Type: application/json' -d "{\"url\": \"$2\", \"kinds\": [\"charge.succeeded\"]}" "$api") ||
  { echo "$endpoint" >&2; exit 1; }
echo "$endpoint"
id=$(echo "$endpoint" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
call "$api/$id/test"
