#!/bin/sh
# Appends the records that changed since the last run to changes.ndjson, in the folder where it runs: sync.sh FILE keeps the horizon in FILE.
set -eu
from=$(cat "$1" 2>/dev/null || echo 1970-01-01T00:00:00Z)
export='/public/v1/export'

# Every change before the horizon is visible, and none will be added: a window that ends there misses nothing.
to=$(curl -gsS --fail -D - -o /dev/null -H "Service-Secret: $PROJECT_KEY" \
  "$TUNDISH_URL/public/v1/subscriptions?filter[updated_at.to]=1970-01-01T00:00:00Z&limit=1" |
  tr -d '\r' | sed -n 's/^[Xx]-[Ss]ync-[Hh]orizon: //p')

curl -gsS --fail -D headers.txt -H "Service-Secret: $PROJECT_KEY" "$TUNDISH_URL$export?from=$from&to=$to" > window.ndjson
lost=$(tr -d '\r' < headers.txt | sed -n 's/^[Xx]-[Vv]oid-[Ff]rom: //p')
[ -z "$lost" ] || { echo "The server has lost commits: delete what has an updated_at from $lost on, and $1." >&2; exit 1; }
# Without this last line it is incomplete.
tail -n 1 window.ndjson | grep -q '^{"horizon"' || { echo 'The export broke off: run it again.' >&2; exit 1; }
cat window.ndjson >> changes.ndjson
rm window.ndjson headers.txt
# Only now: a run that ends early is repeated.
printf %s "$to" > "$1"
